// Package modeltest is for tests of programs that ask language models. It has a server that speaks
// the wires of providers, with the faults that they have; values that fit a schema; and a model
// file, for a real server, that writes whatever a schema allows.
package modeltest
