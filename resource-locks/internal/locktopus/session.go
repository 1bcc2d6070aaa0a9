package locktopus

import "checkoutlock/schemas/fault"

// state is where a connection stands, in the words of the protocol.
type state string

const (
	stateReady    state = "ready"
	stateEnqueued state = "enqueued"
	stateAcquired state = "acquired"
)

// session is the protocol of one connection: it has at most one lock at a time. Its zero
// value is no session; newSession begins one.
type session struct {
	state state
	id    string // of the current lock
}

func newSession() session { return session{state: stateReady} }

// checkAction refuses an unknown action, and one that the state does not allow.
func (s *session) checkAction(action string) error {
	if action != actionLock && action != actionRelease {
		return errProtocol("invalid action: %s", fault.Shown(action))
	}
	if (action == actionLock) != (s.state == stateReady) {
		return errProtocol("invalid action [%s] in state [%s]", action, s.state)
	}
	return nil
}

// lock notes that the lock with this id was stored.
func (s *session) lock(id string, held bool) response {
	s.id, s.state = id, stateEnqueued
	if held {
		s.state = stateAcquired
	}
	return response{ID: id, Action: actionLock, State: s.state}
}

// grant notes that the waiting lock is held.
func (s *session) grant() response {
	s.state = stateAcquired
	return response{ID: s.id, Action: actionLock, State: s.state}
}

// release notes that the lock was released.
func (s *session) release() response {
	s.state = stateReady
	return response{ID: s.id, Action: actionRelease, State: s.state}
}
