# frozen_string_literal: true

# The blocks of code on a page, each with what it is expected to print: see DocsTest. Needs neither the extension nor test_helper.
module Fences
  Fence = Data.define(:page, :line, :language, :content, :below) do
    def expected
      return below.content.lines(chomp: true) if below

      content.lines(chomp: true).filter_map { |line| line[/# => ?(.*)\z/, 1] }
    end

    def name = "#{page.delete_prefix("#{ROOT}/")}:#{line}"
  end

  ROOT = File.expand_path("../../..", __dir__)

  # Ruby for mruby, which is not run where there is none.
  MRUBY = "ruby mruby"

  # From the last to the first, because a ruby block wants to know what stands below it.
  def self.of(page)
    text = File.read(page)
    below = nil
    found = []
    text.to_enum(:scan, /^```([\w ]*)\n(.*?)^```\n/m).map { $~ }.reverse_each do |match|
      line = match.pre_match.count("\n") + 1
      output = below if below&.language == "text" && text[match.end(0)..].lstrip.start_with?("```text\n#{below.content}```")
      found << below = Fence.new(page:, line:, language: match[1], content: match[2], below: output)
    end
    found.reverse
  end
end
