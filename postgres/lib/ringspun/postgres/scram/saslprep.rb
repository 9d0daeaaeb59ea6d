# frozen_string_literal: true

module Ringspun
  module Postgres
    class Scram
      # A password as SASLprep has it (RFC 4013), and as PostgreSQL does when it keeps one: what cannot be prepared is taken as it
      # is. The tables are those of RFC 3454, by their names there.
      #
      # @api private
      module Saslprep
        C_1_2 = /[\u00A0\u1680\u2000-\u200B\u202F\u205F\u3000]/
        B_1 = /[\u00AD\u034F\u1806\u180B-\u180D\u200B-\u200D\u2060\uFE00-\uFE0F\uFEFF]/
        # C.2.1, C.2.2, C.3, C.4, C.6, C.7, C.8, C.9, and A.1: what has no meaning in Unicode 3.2.
        PROHIBITED = /
          [\u0000-\u001F\u007F-\u009F\u06DD\u070F\u180E\u200C\u200D\u2028\u2029\u2060-\u2063\u206A-\u206F\uFEFF] |
          [\uFFF9-\uFFFD\u{1D173}-\u{1D17A}\u2FF0-\u2FFB\u0340\u0341\u200E\u200F\u202A-\u202E\u{E0001}\u{E0020}-\u{E007F}] |
          \p{Co} | \p{Noncharacter_Code_Point} | \P{Age=3.2}
        /x
        # D.1: from right to left.
        RIGHT = "\\u05BE\\u05C0\\u05C3\\u05D0-\\u05EA\\u05F0-\\u05F4\\u061B\\u061F\\u0621-\\u063A\\u0640-\\u064A\\u066D-\\u066F" \
                "\\u0671-\\u06D5\\u06E5\\u06E6\\u06FA-\\u06FE\\u0700-\\u070D\\u0710\\u0712-\\u072C\\u0780-\\u07A5\\u07B1" \
                "\\uFB1D\\uFB1F-\\uFB28\\uFB2A-\\uFB36\\uFB38-\\uFB3C\\uFB3E\\uFB40\\uFB41\\uFB43\\uFB44\\uFB46-\\uFBB1" \
                "\\uFBD3-\\uFD3D\\uFD50-\\uFD8F\\uFD92-\\uFDC7\\uFDF0-\\uFDFC\\uFE70-\\uFE74\\uFE76-\\uFEFC"
        D_1 = /[#{RIGHT}]/
        # D.2, from left to right, is far longer, and is what else has letters.
        D_2 = /[\p{L}&&[^#{RIGHT}]]/
        private_constant :C_1_2, :B_1, :PROHIBITED, :RIGHT, :D_1, :D_2

        class << self
          # @param password [String]
          # @return [String]
          def prepare(password)
            text = password.dup.force_encoding(Encoding::UTF_8)
            return password if text.ascii_only? || !text.valid_encoding?

            mapped = text.gsub(C_1_2, " ").gsub(B_1, "").unicode_normalize(:nfkc)
            mapped.empty? || mapped.match?(PROHIBITED) || mixed?(mapped) ? password : mapped
          end

          private

          # Of both directions: RFC 3454, section 6.
          def mixed?(text) = text.match?(D_1) && (text.match?(D_2) || !text[0].match?(D_1) || !text[-1].match?(D_1))
        end
      end
      private_constant :Saslprep
    end
  end
end
