package database

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

var (
	upDesc          = prometheus.NewDesc("database_up", "1 if the database was reached last and can write, else 0.", nil, nil)
	connectionsDesc = prometheus.NewDesc("database_connections", "Open connections, by pool and by whether they are in use.", []string{"pool", "state"}, nil)
	maximumDesc     = prometheus.NewDesc("database_connections_max", "The greatest number of connections, by pool.", []string{"pool"}, nil)
	waitsDesc       = prometheus.NewDesc("database_connection_waits_total", "Calls that waited for a connection, by pool.", []string{"pool"}, nil)
	waitDesc        = prometheus.NewDesc("database_connection_wait_seconds_total", "Time that calls waited for a connection, by pool.", []string{"pool"}, nil)
)

// Describe implements prometheus.Collector.
func (db *DB) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(db, ch) }

// Collect implements prometheus.Collector. It asks no server.
func (db *DB) Collect(ch chan<- prometheus.Metric) {
	up := 0.0
	if db.watch.isConnected() && !db.readOnly.Load() && db.lack.current() == "" {
		up = 1
	}
	ch <- prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, up)
	for name, pool := range map[string]*pgxpool.Pool{"urgent": db.Urgent, "ordinary": db.Ordinary} {
		s := pool.Stat()
		ch <- prometheus.MustNewConstMetric(connectionsDesc, prometheus.GaugeValue, float64(s.AcquiredConns()), name, "in_use")
		ch <- prometheus.MustNewConstMetric(connectionsDesc, prometheus.GaugeValue, float64(s.IdleConns()), name, "idle")
		ch <- prometheus.MustNewConstMetric(maximumDesc, prometheus.GaugeValue, float64(s.MaxConns()), name)
		ch <- prometheus.MustNewConstMetric(waitsDesc, prometheus.CounterValue, float64(s.EmptyAcquireCount()), name)
		ch <- prometheus.MustNewConstMetric(waitDesc, prometheus.CounterValue, s.EmptyAcquireWaitTime().Seconds(), name)
	}
}
