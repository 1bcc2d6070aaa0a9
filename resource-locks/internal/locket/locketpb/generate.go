// Package locketpb is the generated Go code of locket.proto. "make proto" generates it.
package locketpb

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative locket.proto
