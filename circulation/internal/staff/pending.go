package staff

const (
	figureMinutes = 60
	maxStreams    = 32
)

func (p *Pages) locks(*visit) error          { return nil }
func (p *Pages) liveLocks(*visit) error      { return nil }
func (p *Pages) askRelease(*visit) error     { return nil }
func (p *Pages) doRelease(*visit) error      { return nil }
func (p *Pages) contention(*visit) error     { return nil }
func (p *Pages) liveContention(*visit) error { return nil }
