//go:build cgo && unix

package cmd

/*
#include <errno.h>
#include <fcntl.h>

static int stdout_closed;

// Before its first line Go has /dev/null stand where a standard file is closed.
__attribute__((constructor)) static void look_at_stdout(void) {
	stdout_closed = fcntl(1, F_GETFD) == -1 && errno == EBADF;
}

static int is_stdout_closed(void) { return stdout_closed; }
*/
import "C"

// stdoutClosed reports whether the program was started without a standard output.
func stdoutClosed() bool { return C.is_stdout_closed() != 0 }
