package sunbird

import (
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// keys are the public keys of tokens by their ids.
type keys map[string]*rsa.PublicKey

// loadKeys reads a folder of PEM files, or a JWKS file. It needs at least one key.
func loadKeys(path string) (keys, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("SUNBIRD_KEYS: %w", err)
	}
	load := loadJWKS
	if info.IsDir() {
		load = loadFolder
	}
	found, err := load(path)
	if err == nil && len(found) == 0 {
		err = errors.New("there is no RSA key")
	}
	if err != nil {
		return nil, fmt.Errorf("SUNBIRD_KEYS %s: %w", path, err)
	}
	return found, nil
}

// loadFolder reads public keys and certificates. A file's name is the key's id, with or
// without an ending of pemEndings.
func loadFolder(path string) (keys, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	found := keys{}
	for _, entry := range entries {
		name := filepath.Join(path, entry.Name())
		info, err := os.Stat(name) // of the target of a link, as secrets are mounted
		if err != nil {
			return nil, err
		}
		if info.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		text, err := os.ReadFile(name) //nolint:gosec // the operator names the folder
		if err != nil {
			return nil, err
		}
		key, err := jwt.ParseRSAPublicKeyFromPEM(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		id := entry.Name()
		if slices.Contains(pemEndings, filepath.Ext(id)) {
			id = strings.TrimSuffix(id, filepath.Ext(id))
		}
		found[id] = key
	}
	return found, nil
}

var pemEndings = []string{".pem", ".crt", ".cer", ".pub"}

// loadJWKS reads the RSA keys of an RFC 7517 file. It skips other kinds.
func loadJWKS(path string) (keys, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	var set struct {
		Keys []struct {
			Kind string `json:"kty"`
			ID   string `json:"kid"`
			N, E string
		} `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, err
	}
	found := keys{}
	for i, k := range set.Keys {
		if k.Kind != "RSA" {
			continue
		}
		n, nerr := base64.RawURLEncoding.DecodeString(k.N)
		e, eerr := base64.RawURLEncoding.DecodeString(k.E)
		if err := errors.Join(nerr, eerr); err != nil || len(n) < 128 || len(e) == 0 || len(e) > 4 {
			return nil, fmt.Errorf("keys[%d] %q has no RSA key of 1024 bits or more in n and e", i, k.ID)
		}
		found[k.ID] = &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
	}
	return found, nil
}
