// Package termtest opens terminals for tests, with a person at the other end. It does so on Linux alone.
package termtest
