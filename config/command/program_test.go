package command_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"checkoutlock/config/command"
)

// lender is a program whose command lend prints the flag -to.
var lender = command.Program{Name: "lend-er", Commands: map[string]command.Command{
	"lend": func(fs *flag.FlagSet) func(context.Context, command.Process) error {
		to := fs.String("to", "", "")
		fs.Bool("twice", false, "")
		return func(_ context.Context, p command.Process) error {
			_, err := p.Stdout.Write([]byte("to " + *to))
			return err
		}
	},
	"serve": command.Plain(func(_ context.Context, p command.Process) error {
		_, err := p.Stdout.Write([]byte("served"))
		return err
	}),
	"healthcheck": command.Plain(func(context.Context, command.Process) error { return errors.New("not ready") }),
}}

func TestProgram_RefusesWordsThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args   string
		status int // 0 is success
		want   string
	}{
		{args: "", want: "served"},
		{args: "serve", want: "served"},
		{args: "lend -to ada", want: "to ada"},
		{args: "lend --to=ada", want: "to ada"},
		{args: "lend -to ada twice", status: 2, want: `lend takes flags alone, but got ["twice"]`},
		{args: "lend -from ada", status: 2, want: "-from"},
		{args: "lent", status: 2, want: `there is no command "lent"; lend-er help lists them`},
		{args: "-lend", status: 2, want: `there is no command "-lend"`},
		{args: "serve now", status: 2, want: "serve takes flags alone"},
		{args: "version now", status: 2, want: "version takes flags alone"},
		{args: "--version now", status: 2, want: "version takes flags alone"},
		{args: "help now", status: 2, want: "help takes flags alone"},
		{args: "completion bash", status: 2, want: "completion takes flags alone"},
		{args: "-healthcheck now", status: 2, want: "healthcheck takes flags alone"},
		{args: "-healthcheck", status: 1, want: "not ready"},
	} {
		var out bytes.Buffer
		err := lender.Run(t.Context(), command.Process{Args: strings.Fields(tt.args), Stdout: &out})
		status, got := 0, out.String()
		if err != nil {
			status, got = 1, err.Error()
		}
		if other, ok := errors.AsType[*command.StatusError](err); ok {
			status = other.Status
		}
		if status != tt.status || !strings.Contains(got, tt.want) {
			t.Errorf("%q: got %d %q, want %d with %q", tt.args, status, got, tt.status, tt.want)
		}
	}
	for _, arg := range []string{"help", "-h", "--help"} {
		if err := lender.Run(t.Context(), command.Process{Args: []string{arg}}); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%s: got %v, want the help", arg, err)
		}
	}
}

func TestProgram_PrintsItsVersion(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	want := regexp.MustCompile(`^lend-er devel( \([^)]*\) \S+)? ` + regexp.QuoteMeta(runtime.Version()) + `\n$`)
	err := lender.Run(t.Context(), command.Process{Args: []string{"version"}, Stdout: &out})
	if err != nil || !want.Match(out.Bytes()) {
		t.Errorf("got %q, %v, want %s", &out, err, want)
	}
}

func TestProgram_CompletesInBash(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	var script bytes.Buffer
	if err := lender.Run(t.Context(), command.Process{Args: []string{"completion"}, Stdout: &script}); err != nil {
		t.Fatal(err)
	}
	for typed, want := range map[string]string{
		"":             "completion healthcheck help lend serve version",
		"le":           "lend",
		"lend ":        "-to -twice",
		"lend -tw":     "-twice",
		"lend -to x -": "-to -twice",
		"serve -":      "",
	} {
		words := strings.Split("lend-er "+typed, " ")
		run := script.String() + "COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _lend_er; echo ${COMPREPLY[@]}"
		out, err := exec.CommandContext(t.Context(), bash, append([]string{"-c", run, "bash"}, words...)...).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", typed, got, err, want)
		}
	}
}
