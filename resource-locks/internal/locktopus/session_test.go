package locktopus

import "testing"

func TestSession_ChecksActions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		state  state
		action string
		want   string
	}{
		{stateReady, "lock", ""},
		{stateEnqueued, "release", ""},
		{stateAcquired, "release", ""},
		{stateReady, "release", "invalid action [release] in state [ready]"},
		{stateEnqueued, "lock", "invalid action [lock] in state [enqueued]"},
		{stateAcquired, "lock", "invalid action [lock] in state [acquired]"},
		{stateReady, "steal", "invalid action: steal"},
		{stateReady, "LOCK", "invalid action: LOCK"},
		{stateReady, "", "invalid action: "},
		{stateAcquired, "steal", "invalid action: steal"},
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
		{"a free lock", s.lock("1", true), response{"1", "lock", "acquired"}, stateAcquired},
		{"its release", s.release(), response{"1", "release", "ready"}, stateReady},
		{"a taken lock", s.lock("4", false), response{"4", "lock", "enqueued"}, stateEnqueued},
		{"its grant", s.grant(), response{"4", "lock", "acquired"}, stateAcquired},
		{"its release", s.release(), response{"4", "release", "ready"}, stateReady},
		{"a taken lock", s.lock("5", false), response{"5", "lock", "enqueued"}, stateEnqueued},
		{"its release while it waits", s.release(), response{"5", "release", "ready"}, stateReady},
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
