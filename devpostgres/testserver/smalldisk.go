package testserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/devpostgres"
)

// smallDiskSize holds a new database, which has some 8 MB, and a few thousand rows.
const smallDiskSize = 24 << 20

const smallDiskTimeout = time.Minute // of one step

// SmallDisk is a database whose tables are on a small file system of their own, so that its
// disk can be full. The write-ahead log is elsewhere: PostgreSQL goes on, and refuses with
// SQLSTATE 53100 what makes a table longer.
type SmallDisk struct {
	// URL is the address of the database. Its user is a superuser.
	URL string
	// Server is the server of this database alone.
	Server *devpostgres.Server

	ballast string // the file that fills the disk
}

// NewSmallDisk starts a server with a database on a small disk, until the test ends. It
// skips the test where this process may not mount a file system: that takes root on Linux.
func NewSmallDisk(tb testing.TB) *SmallDisk {
	tb.Helper()
	mounted, err := os.MkdirTemp("/tmp", "checkoutlock-disk-") //nolint:usetesting // the server's user must enter it
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.Remove(mounted) })
	if err := mountMemory(mounted, smallDiskSize); errors.Is(err, os.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		tb.Skipf("a full disk needs a mount, which is root's on Linux: %v", err)
	} else if err != nil {
		tb.Fatalf("mounting a small disk: %v", err)
	}
	tb.Cleanup(func() {
		if err := unmount(mounted); err != nil {
			tb.Errorf("unmounting the small disk: %v", err)
		}
	})
	server := Start(tb, nil)
	d := &SmallDisk{Server: server, ballast: filepath.Join(mounted, "ballast")}
	if d.URL, err = createOn(tb.Context(), server.URL(), filepath.Join(mounted, "tables")); err != nil {
		tb.Fatalf("making a database on the small disk: %v", err)
	}
	return d
}

// createOn creates a database with its tables in a new folder, and returns its address.
func createOn(ctx context.Context, server, folder string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, smallDiskTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	var dir string
	if err := conn.QueryRow(ctx, `SHOW data_directory`).Scan(&dir); err != nil {
		return "", err
	}
	if err := makeFolderLike(folder, dir); err != nil {
		return "", err
	}
	const name = "small"
	for _, statement := range []string{
		fmt.Sprintf(`CREATE TABLESPACE %s LOCATION '%s'`, name, folder),
		fmt.Sprintf(`CREATE DATABASE %[1]s TABLESPACE %[1]s`, name),
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return "", err
		}
	}
	u, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	first, err := pgx.Connect(ctx, u.String()) // its first session keeps a file, which later ones need
	if err != nil {
		return "", err
	}
	return u.String(), first.Close(ctx)
}

// makeFolderLike makes a folder with the owner of another one.
func makeFolderLike(folder, other string) error {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(other)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.ErrUnsupported
	}
	return os.Chown(folder, int(owner.Uid), int(owner.Gid))
}

// Fill takes all space that the disk has left. What PostgreSQL has in files already, it can
// still change.
func (d *SmallDisk) Fill(tb testing.TB) {
	tb.Helper()
	f, err := os.OpenFile(d.ballast, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	_, err = io.Copy(f, zeros{})
	if err := errors.Join(ignoreFull(err), f.Close()); err != nil {
		tb.Fatal(err)
	}
}

func ignoreFull(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return nil
	}
	return err
}

// Free gives back what Fill has taken.
func (d *SmallDisk) Free(tb testing.TB) {
	tb.Helper()
	if err := os.Remove(d.ballast); err != nil {
		tb.Fatal(err)
	}
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }
