package passphrase

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pulumi/pulumi/pkg/v3/secrets"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
)

// keptKeys is the variable with the folder where keys are kept that were derived from a passphrase. The million rounds
// protect a passphrase that a person chose; that of the embedded cloud is random and lies in a file beside this folder.
const keptKeys = "BEZEL_KEPT_KEYS"

// symmetricCrypterFromPhraseAndState is the published function, but it uses a kept key.
func symmetricCrypterFromPhraseAndState(phrase string, state string) (config.Crypter, error) {
	splits := strings.SplitN(state, ":", 3)
	if len(splits) != 3 {
		return nil, errors.New("malformed state value")
	}
	if splits[0] != "v1" {
		return nil, errors.New("unknown state version")
	}
	salt, err := base64.StdEncoding.DecodeString(splits[1])
	if err != nil {
		return nil, err
	}
	file := keyFile(phrase, state)
	if kept, err := os.ReadFile(file); err == nil && len(kept) == config.SymmetricCrypterKeyBytes {
		if crypter := config.NewSymmetricCrypter(kept); opens(crypter, splits[2]) {
			return crypter, nil
		}
	}
	key, err := derive(phrase, salt)
	if err != nil {
		return nil, err
	}
	crypter := config.NewSymmetricCrypter(key)
	if !opens(crypter, splits[2]) {
		return nil, ErrIncorrectPassphrase
	}
	keep(file, key)
	return crypter, nil
}

// NewPassphraseSecretsManager is the published function, but it keeps the key of the new salt.
func NewPassphraseSecretsManager(phrase string) (string, secrets.Manager, error) {
	salt := make([]byte, 8)
	if _, err := rand.Read(salt); err != nil {
		return "", nil, err
	}
	key, err := derive(phrase, salt)
	if err != nil {
		return "", nil, err
	}
	crypter := config.NewSymmetricCrypter(key)
	message, err := crypter.EncryptValue(context.Background(), "pulumi")
	if err != nil {
		return "", nil, fmt.Errorf("encrypting message: %w", err)
	}
	state := fmt.Sprintf("v1:%s:%s", base64.StdEncoding.EncodeToString(salt), message)
	jsonState, err := json.Marshal(localSecretsManagerState{Salt: state})
	if err != nil {
		return "", nil, fmt.Errorf("marshalling state: %w", err)
	}
	keep(keyFile(phrase, state), key)
	cached := config.NewCiphertextToPlaintextCachedCrypter(crypter, crypter)
	return state, &localSecretsManager{crypter: cached, state: jsonState}, nil
}

func derive(phrase string, salt []byte) ([]byte, error) {
	return pbkdf2.Key(sha256.New, phrase, salt, 1000000, config.SymmetricCrypterKeyBytes)
}

func opens(crypter config.Crypter, message string) bool {
	decrypted, err := crypter.DecryptValue(context.Background(), message)
	return err == nil && decrypted == "pulumi"
}

// keyFile is the file of a key, "" where none is kept.
func keyFile(phrase string, state string) string {
	folder := os.Getenv(keptKeys)
	if folder == "" {
		return ""
	}
	name := hmac.New(sha256.New, []byte(phrase))
	name.Write([]byte(state))
	return filepath.Join(folder, hex.EncodeToString(name.Sum(nil)))
}

// keep writes a key whole or not at all; without it the next run derives the key again.
func keep(file string, key []byte) {
	if file == "" {
		return
	}
	written, err := os.CreateTemp(filepath.Dir(file), ".key-") // only the owner reads it
	if err != nil {
		return
	}
	_, err = written.Write(key)
	if closed := written.Close(); err == nil && closed == nil {
		err = os.Rename(written.Name(), file)
	}
	if err != nil {
		_ = os.Remove(written.Name())
	}
}
