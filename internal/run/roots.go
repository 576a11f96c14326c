package run

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Roots has servers verified with the certificates of a PEM file. Without a file it is
// nil, which is those of the system.
func Roots(file string) (*tls.Config, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	return &tls.Config{RootCAs: roots}, nil
}
