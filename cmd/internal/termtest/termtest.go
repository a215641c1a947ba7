// Package termtest opens terminals for tests, with a person at the other end. It does so only on
// Linux.
package termtest
