# frozen_string_literal: true

require "cgi/escape"

module Ringspun
  module Jobs
    class Web
      # Writes HTML and SVG. All text and every attribute's value is escaped, and there is no way to write markup as a String: so
      # what a job's author has written stays text.
      #
      # @api private
      class Markup
        # Elements without an end. Those of SVG all have one.
        VOID = %w[input link meta].freeze
        TAGS = %w[
          a body button caption code dd details div dl dt form h1 h2 head header html input label li link main meta nav
          p pre script section small span summary table tbody td th thead time title tr ul option select
          svg polyline line text
        ].freeze

        # Control characters, and what turns the direction of writing, by which a text could look like another one.
        UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/

        # @param value [Object]
        # @return [String] as UTF-8, with a mark in place of each byte or character that cannot be shown
        def self.plain(value)
          text = value.to_s
          text = text.dup.force_encoding(Encoding::UTF_8) unless text.encoding == Encoding::UTF_8
          text = text.scrub("\u{fffd}") unless text.valid_encoding?
          text.match?(UNSEEN) ? text.gsub(UNSEEN, "\u{fffd}") : text
        end

        def initialize = @out = +""

        TAGS.each do |name|
          define_method(name) { |*texts, **attributes, &block| element(name, texts, attributes, &block) }
        end

        # @param texts [Array<Object>]
        # @return [nil]
        def say(*texts)
          texts.each { |text| @out << CGI.escapeHTML(Markup.plain(text)) }
          nil
        end

        # Takes over what another one has written.
        #
        # @param markup [Markup]
        def add(markup)
          @out << markup.to_s
          nil
        end

        # @return [String]
        def to_s = @out

        # @return [String] the whole document
        def document = "<!DOCTYPE html>\n#{@out}\n"

        private

        # An attribute that is nil or false is left out; one that is true has no value.
        def element(name, texts, attributes)
          @out << "<" << name
          attributes.each do |attribute, value|
            next unless value

            @out << " " << attribute.name.tr("_", "-")
            @out << '="' << CGI.escapeHTML(Markup.plain(value)) << '"' unless value == true
          end
          @out << ">"
          return if VOID.include?(name)

          say(*texts)
          yield if block_given?
          @out << "</" << name << ">"
          nil
        end
      end
      private_constant :Markup
    end
  end
end
