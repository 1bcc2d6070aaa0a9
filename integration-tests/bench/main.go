// Command bench measures the pair beside four yardsticks, and resource-locks beside the
// published server of Locket and two yardsticks. It writes a report.
//
// The yardsticks of the locks are a ceiling (an HTTP handler that does nothing), a plain
// service (Echo and pgx with FOLIO's three statements, nothing else) and a floor (two
// statements sent by pgx). That of check-outs is a plain service that writes the same rows.
// Those of resource-locks are a ceiling (its libraries, which do nothing) and a plain server
// of Locket (gRPC and pgx with one statement). A ratio compares figures of one run only, and
// the repetitions of what it compares alternate, so that a slow moment of the machine meets
// all of them.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

// options are the command's flags.
type options struct {
	base        string         // a revision to compare with; empty compares with none
	report      string         // the file of the report; empty writes none
	only        *regexp.Regexp // the sections to run
	repetitions int
	slice       time.Duration // the length of one repetition under load
	sustained   time.Duration
	loans       int // the largest library of the section growth
	claims      int // the claims that wait in the sections locktopus and release of claims
	locks       int // the locks of the section live locks
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "serve" {
		if err := serveYardstick(os.Args[2], os.Getenv); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	o, err := readOptions()
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx, o)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func readOptions() (options, error) {
	var o options
	var only string
	flag.StringVar(&o.base, "base", "", "a revision that is built and measured beside the current one")
	flag.StringVar(&o.report, "report", "", "the Markdown file to write")
	flag.StringVar(&only, "only", "", "a regular expression of the sections to run")
	flag.IntVar(&o.repetitions, "repetitions", 3, "how often each measurement is taken; the median counts")
	flag.DurationVar(&o.slice, "slice", time.Second, "how long one repetition keeps up its load")
	flag.DurationVar(&o.sustained, "sustained", 2*time.Minute, "how long the section sustained keeps up its load")
	flag.IntVar(&o.loans, "loans", 1_000_000, "the loans of the largest library in the section growth")
	flag.IntVar(&o.claims, "claims", 10_000, "the claims that wait in the sections locktopus and release of claims")
	flag.IntVar(&o.locks, "locks", 1_000_000, "the live locks of the section live locks")
	flag.Parse()
	var err error
	o.only, err = regexp.Compile(only)
	return o, err
}

// section is one part of the report.
type section struct {
	name string
	run  func(ctx context.Context, b *bench) error
}

var sections = []section{
	{"locks", measureLocks},
	{"contended", measureContended},
	{"hand-over", measureHandOver},
	{"check-outs", measureCheckOuts},
	{"what is watched", measureWatched},
	{"fresh database", measureFresh},
	{"growth", measureGrowth},
	{"tenants", measureTenants},
	{"sustained", measureSustained},
	{"locket", measureLocket},
	{"locktopus", measureLocktopus},
	{"release of claims", measureReleases},
	{"live locks", measureLiveLocks},
	{"self-check machines", measureMachines},
	{"idle connections", measureIdle},
}

// bench is what all sections share.
type bench struct {
	options
	report *report
	dir    string // for files of the run
	db     *database
	builds []build // the current revision first, then the base
}

func run(ctx context.Context, o options) (err error) {
	b := &bench{options: o, report: newReport(os.Stdout)}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b.dir = dir
	if b.builds, err = buildServices(ctx, dir, o.base); err != nil {
		return err
	}
	if b.db, err = startDatabase(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.db.stop()) }()
	if err := b.report.describeMachine(ctx, b); err != nil {
		return err
	}
	for _, s := range sections {
		if !o.only.MatchString(s.name) {
			continue
		}
		b.report.begin(s.name)
		if err := s.run(ctx, b); err != nil {
			return fmt.Errorf("measuring %s: %w", s.name, cmp.Or(context.Cause(ctx), err))
		}
	}
	if o.report == "" {
		return nil
	}
	return b.report.write(o.report)
}
