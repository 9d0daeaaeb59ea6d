# frozen_string_literal: true

require "test_helper"
require "yaml"

# pass: documents
# inputs: .github, runtime/gem_pages.rb, README.md, *.md
# rubies: one

# What those meet who bring something: the forms of issues, the template of a change, and what the host of the repository runs.
class CommunityTest < Minitest::Test
  include AnyBackend

  ROOT = File.expand_path("../../..", __dir__)
  FORMS = Dir[File.join(ROOT, ".github/ISSUE_TEMPLATE/*.yml")].grep_v(/config\.yml\z/).sort.freeze
  TYPES = %w[markdown textarea input dropdown checkboxes].freeze

  def read(path) = YAML.safe_load_file(File.join(ROOT, path))

  # What the host asks of a form. It shows nothing of one that lacks it.
  def test_each_form_of_an_issue_is_one
    assert_equal %w[bug idea speed], FORMS.map { |path| File.basename(path, ".yml") }
    FORMS.each do |path|
      form = YAML.safe_load_file(path)
      assert_equal %w[body description labels name], form.keys.sort, path
      fields = form["body"].reject { |field| field["type"] == "markdown" }
      assert_empty form["body"].map { |field| field["type"] } - TYPES, path
      assert_equal fields.map { |field| field["id"] }.uniq, fields.map { |field| field["id"] }.grep(/\A[\w-]+\z/), path
      assert(fields.all? { |field| field.dig("attributes", "label") }, path)
      assert(fields.any? { |field| field.dig("validations", "required") }, path)
    end
  end

  def test_a_vulnerability_has_a_way_of_its_own
    link = read(".github/ISSUE_TEMPLATE/config.yml").fetch("contact_links").first
    assert_equal "#{File.read(File.join(ROOT, "runtime/gem_pages.rb"))[/HOME = "(.*)"/, 1]}/security/advisories/new", link["url"]
  end

  # A pull request's code must not get more than it needs.
  def test_the_workflow_runs_the_tests_and_may_only_read
    workflow = read(".github/workflows/test.yml")
    job = workflow.fetch("jobs").fetch("test")
    assert_equal "bin/test --yes", job["steps"].filter_map { |step| step["run"] }.last
    assert_equal({ "contents" => "read" }, workflow["permissions"])
    assert_includes job.dig("container", "options"), "seccomp=unconfined", "io_uring is refused otherwise"
    triggers = workflow[true] # YAML's word for `on`
    assert_equal %w[pull_request push], triggers.keys.sort
  end

  # Commands and pages that they name are there.
  def test_what_is_named_is_there
    texts = Dir["#{ROOT}/.github/**/*.{md,yml}", "#{ROOT}/CODE_OF_CONDUCT.md"].map { |path| File.read(path) }
    named = texts.flat_map { |text| text.scan(%r{(?<![\w./-])(?:(?:docs|bench|bin|\.ci)/[\w.-]+|[A-Z_]+\.md)\b}) }.uniq
    assert_operator named.size, :>, 4
    assert_empty(named.reject { |path| File.exist?(File.join(ROOT, path.delete_suffix("."))) })
    assert_includes File.read(File.join(ROOT, "README.md")), "(CODE_OF_CONDUCT.md)"
  end
end
