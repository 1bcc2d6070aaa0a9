package staff

const figureMinutes = 60

func (p *Pages) contention(*visit) error     { return nil }
func (p *Pages) liveContention(*visit) error { return nil }
