package represent

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// validate refuses a page that is blank, or not valid in its format.
func (f *format) validate(page []byte) error {
	switch {
	case len(bytes.Trim(page, "\ufeff \t\r\n")) == 0:
		return errors.New("the page is blank")
	case !utf8.Valid(page):
		return errors.New("the page is not in UTF-8")
	case f.check == nil:
		return nil
	}
	return f.check(page)
}

func checkJSON(page []byte) error {
	var value json.RawMessage
	if err := json.Unmarshal(page, &value); err != nil {
		return fmt.Errorf(`the page is not valid JSON: %w; a field belongs inside quotes, as in "{{.Message}}"`, err)
	}
	return nil
}

// checkXML accepts a document of one root element without a document type. encoding/xml accepts anything beside the
// root, and <?xml anywhere.
func checkXML(page []byte) error {
	d := xml.NewDecoder(bytes.NewReader(page))
	depth := 0
	roots := 0
	for {
		start := d.InputOffset()
		token, err := d.Token()
		if err == io.EOF && roots == 1 {
			return nil
		}
		if err == io.EOF {
			return fmt.Errorf("the page has %d root elements; XML has one", roots)
		}
		if err != nil {
			return fmt.Errorf("the page is not well-formed XML: %w; "+
				"a field belongs inside an element, or inside the quotes of an attribute", err)
		}
		text := page[start:d.InputOffset()]
		isMisplaced := false
		switch token := token.(type) {
		case xml.StartElement:
			if depth == 0 {
				roots++
			}
			depth++
		case xml.EndElement:
			depth--
		case xml.CharData:
			isMisplaced = depth == 0 && len(bytes.Trim(text, " \t\r\n")) > 0
		case xml.ProcInst:
			isMisplaced = token.Target == "xml" && start > 0
		case xml.Directive:
			isMisplaced = true // a document type
		}
		if isMisplaced {
			return fmt.Errorf("the page has %q where it is not allowed", text)
		}
	}
}
