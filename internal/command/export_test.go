package command

// ConfigOf is for tests that need the handler, which this package cannot import.
var ConfigOf = configOf
