package wire

// ChecksumOf is checksumOf.
var ChecksumOf = checksumOf
