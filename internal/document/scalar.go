package document

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
)

// IsText reports whether a value of type t reads itself from a word.
func IsText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// SetScalar reads one value from text into v. Where it is a size, a whole number may have
// a unit of bytes.
func SetScalar(v reflect.Value, text string, size bool) error {
	if t, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return t.UnmarshalText([]byte(text))
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration; write for example 500ms, 5s or 1m30s", text)
		}
		v.SetInt(int64(d))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		v.SetBool(text == "true")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, err := parseInt(text, size)
		if err != nil {
			return err
		}
		if v.OverflowInt(n) {
			return outOfRange(text)
		}
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := parseInt(text, size)
		if err != nil {
			return err
		}
		if n < 0 || v.OverflowUint(uint64(n)) {
			return outOfRange(text)
		}
		v.SetUint(uint64(n))
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(text, v.Type().Bits())
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("%q is not a number", text)
		}
		v.SetFloat(f)
	default:
		return fmt.Errorf("values of type %v cannot be read", v.Type())
	}
	return nil
}

// parseInt reads a whole number, or a size.
func parseInt(text string, size bool) (int64, error) {
	if size {
		return ParseSize(text)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, outOfRange(text)
	case err != nil:
		return 0, fmt.Errorf("%q is not a whole number", text)
	}
	return n, nil
}

func outOfRange(text string) error { return fmt.Errorf("%s is out of range", text) }
