-- A lease that ends later than twice its length from now was kept before the clock was set back. The
-- leases of older builds have no length, and are judged by their end alone.
ALTER TABLE instance ADD COLUMN lease interval;
COMMENT ON COLUMN instance.lease IS 'The length of the lease, NULL if an older build began it.';
