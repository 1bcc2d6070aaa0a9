package command

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Statuses of a process that failed, beside 1.
const (
	BadUsage    = 2 // the words of the command line are wrong
	Unreachable = 3 // the database cannot be reached, or cannot write
)

// Program is the commands of a service. It has help, version and completion by itself.
type Program struct {
	Name     string
	Commands map[string]Command
}

// Command declares its flags, and returns what runs when they are parsed.
type Command func(fs *flag.FlagSet) func(ctx context.Context, p Process) error

// Plain is a command without flags.
func Plain(run func(ctx context.Context, p Process) error) Command {
	return func(*flag.FlagSet) func(context.Context, Process) error { return run }
}

// NewUsage returns an error about the command line.
func NewUsage(format string, args ...any) error {
	return &StatusError{Err: fmt.Errorf(format, args...), Status: BadUsage}
}

// dashed are the commands that may have dashes, as in other programs.
var dashed = []string{"help", "version", "healthcheck"}

// Run runs the command that the first word names; without one that is serve. It refuses words that
// the command does not know.
func (pr Program) Run(ctx context.Context, p Process) error {
	named, args := "serve", []string(nil)
	if len(p.Args) > 0 {
		named, args = p.Args[0], p.Args[1:]
	}
	name := strings.TrimLeft(named, "-")
	if name == "h" {
		name = "help"
	}
	declare, ok := pr.all()[name]
	if !ok || name != named && !slices.Contains(dashed, name) {
		return NewUsage("there is no command %q; %s help lists them", named, pr.Name)
	}
	fs := newFlags(name)
	run := declare(fs)
	if err := fs.Parse(args); err != nil {
		return &StatusError{Err: err, Status: BadUsage}
	}
	if fs.NArg() > 0 { // without quotes only the first word of a reason would be stored
		return NewUsage("%s takes flags alone, but got %q as well; quote a value of several words", name, fs.Args())
	}
	return run(ctx, p)
}

func (pr Program) all() map[string]Command {
	all := map[string]Command{
		"help":       Plain(func(context.Context, Process) error { return flag.ErrHelp }),
		"version":    Plain(func(_ context.Context, p Process) error { return printVersion(p.Stdout, pr.Name) }),
		"completion": Plain(func(_ context.Context, p Process) error { return pr.printCompletion(p.Stdout) }),
	}
	maps.Copy(all, pr.Commands)
	return all
}

// newFlags returns a flag set that prints nothing.
func newFlags(name string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	return fs
}

// printCompletion prints a script of bash, which zsh reads after bashcompinit. It completes commands
// and their flags.
func (pr Program) printCompletion(w io.Writer) error {
	all := pr.all()
	function := "_" + strings.ReplaceAll(pr.Name, "-", "_")
	script := function + "() {\n  local words=\n  case $COMP_CWORD:${COMP_WORDS[1]} in\n" +
		"    1:*) words='" + strings.Join(slices.Sorted(maps.Keys(all)), " ") + "' ;;\n"
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fs := newFlags(name)
		all[name](fs)
		var flags []string
		fs.VisitAll(func(f *flag.Flag) { flags = append(flags, "-"+f.Name) })
		script += "    *:" + name + ") words='" + strings.Join(flags, " ") + "' ;;\n"
	}
	_, err := fmt.Fprint(w, script, "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\n",
		"complete -F ", function, " ", pr.Name, "\n")
	return err
}
