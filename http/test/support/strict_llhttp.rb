# frozen_string_literal: true

require "llhttp"

# What llhttp, the parser of Node.js, makes of a message, as strict as it comes.
class StrictLlhttp < LLHttp::Delegate
  # Those that it knows, and refuses all others.
  METHODS = %w[GET HEAD POST PUT DELETE OPTIONS PATCH TRACE CONNECT].freeze

  # @!attribute body
  #   @return [String]
  # @!attribute ended
  #   @return [Integer] how many messages have ended
  # @!attribute keeps_alive
  #   @return [Boolean]
  # @!attribute content_length
  #   @return [Integer]
  # @!attribute error
  #   @return [String, nil]
  # @!attribute fields
  #   @return [Array<Array(String, String)>]
  attr_reader :body, :ended, :keeps_alive, :content_length, :error, :fields

  # @param type [Symbol] :request or :response
  def initialize(type)
    super()
    @body = +"".b
    @fields = []
    @ended = 0
    @parser = LLHttp::Parser.new(self, type:)
  end

  # A message behind which another protocol begins is one as well.
  #
  # @param bytes [String]
  # @return [Boolean] whether it takes them
  def take(bytes)
    @parser << bytes
    true
  rescue LLHttp::Error => error
    @error = error.message
    @error.include?("PAUSED_UPGRADE")
  end

  def on_headers_complete
    @keeps_alive = @parser.keep_alive?
    @content_length = @parser.content_length
  end

  def on_message_complete = @ended += 1
  def on_body(bytes) = @body << bytes
  def on_header_field(bytes) = @in_name ? @fields.last.first << bytes : begin_field(bytes)
  def on_header_value(bytes) = @fields.last.last << bytes
  def on_header_value_complete = @in_name = false

  private

  def begin_field(bytes)
    @in_name = true
    @fields << [+"".b << bytes, +"".b]
  end
end
