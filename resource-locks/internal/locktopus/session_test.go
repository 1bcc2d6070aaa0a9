package locktopus

import "testing"

func TestSession_ChecksActions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		state  state
		action string
		want   string
	}{
		{state: stateReady, action: "lock", want: ""},
		{state: stateEnqueued, action: "release", want: ""},
		{state: stateAcquired, action: "release", want: ""},
		{state: stateReady, action: "release", want: "invalid action [release] in state [ready]"},
		{state: stateEnqueued, action: "lock", want: "invalid action [lock] in state [enqueued]"},
		{state: stateAcquired, action: "lock", want: "invalid action [lock] in state [acquired]"},
		{state: stateReady, action: "steal", want: "invalid action: steal"},
		{state: stateReady, action: "LOCK", want: "invalid action: LOCK"},
		{state: stateReady, action: "", want: "invalid action: "},
		{state: stateAcquired, action: "steal", want: "invalid action: steal"},
	}
	for _, tt := range tests {
		s := session{state: tt.state}
		got := ""
		if err := s.checkAction(tt.action); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%q in state %s: got %q, want %q", tt.action, tt.state, got, tt.want)
		}
	}
}

func TestSession_AnswersEachStep(t *testing.T) {
	t.Parallel()
	s := newSession()
	steps := []struct {
		step  string
		got   response
		want  response
		state state
	}{
		{step: "a free lock", got: s.lock("1", true), want: response{"1", "lock", "acquired"}, state: stateAcquired},
		{step: "its release", got: s.release(), want: response{"1", "release", "ready"}, state: stateReady},
		{step: "a taken lock", got: s.lock("4", false), want: response{"4", "lock", "enqueued"}, state: stateEnqueued},
		{step: "its grant", got: s.grant(), want: response{"4", "lock", "acquired"}, state: stateAcquired},
		{step: "its release", got: s.release(), want: response{"4", "release", "ready"}, state: stateReady},
		{step: "a taken lock", got: s.lock("5", false), want: response{"5", "lock", "enqueued"}, state: stateEnqueued},
		{step: "its release while it waits", got: s.release(), want: response{"5", "release", "ready"}, state: stateReady},
	}
	for _, tt := range steps {
		if tt.got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.step, tt.got, tt.want)
		}
	}
	if s.state != stateReady {
		t.Errorf("the state after the last release is %s", s.state)
	}
}
