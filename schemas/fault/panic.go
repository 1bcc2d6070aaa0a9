package fault

import (
	"fmt"
	"runtime/debug"
)

// PanicError is the cause of the fault that Recover makes. Its text is for the log alone: it has
// the stack.
type PanicError struct {
	Value any
	Stack []byte
}

// Error implements error.
func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", p.Value, p.Stack) }

// LogAttrs returns the value and the stack for slog, each under its own key: the log cuts long values.
func (p *PanicError) LogAttrs() []any {
	return []any{"err", fmt.Sprint(p.Value), "stack", string(p.Stack)}
}

// Recover makes a panic of its caller the Internal fault *err, with a PanicError as its cause. It
// leaves *err without a panic. Use it as defer fault.Recover(&err): a panic that a goroutine
// does not recover ends the process.
func Recover(err *error) {
	if value := recover(); value != nil { // the caller defers this function
		*err = Wrap(&PanicError{Value: value, Stack: debug.Stack()}, Internal, "Internal server error")
	}
}
