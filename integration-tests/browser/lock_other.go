//go:build !unix

package browser

import "os"

// tryLock does nothing: there is no apt-get here whose work could be seen half done.
func tryLock(*os.File) error { return nil }
