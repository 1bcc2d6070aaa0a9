package testserver

import "testing"

func TestOpen_GivenDatabaseStartsNothing(t *testing.T) {
	t.Parallel()
	var d database
	d.open("postgres://somewhere/else")
	if d.url != "postgres://somewhere/else" || d.server != nil || d.err != nil {
		t.Errorf("got %s, %v, %v, want the given address and no server", d.url, d.server, d.err)
	}
	if err := d.stop(); err != nil {
		t.Errorf("stop: got %v, want nil", err)
	}
}
