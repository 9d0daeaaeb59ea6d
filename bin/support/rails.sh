# Sourced by bin/setup: the gems of the Rails applications that tests generate, see jobs/test/rails, and of programs of other
# frameworks, http/test/frameworks. They have a lock for each version of Rails and one for all others, and share vendor/bundle with
# the gems of this repository.

# The folder with the headers of libraries.
include_folder=${RINGSPUN_INCLUDE:-/usr/include}

# rails_versions NAME: those for the Ruby of that name in tmp/setup. Only nights have a use for those of another Ruby.
rails_versions() {
  case $1 in
    ruby) echo 8.1 ;;
    ruby-matrix) [[ ${RINGSPUN_NIGHTLY:-} != 1 ]] || echo 8.1 8.0 7.2 frameworks ;;
  esac
}

# gems_of VERSION: the folder of its Gemfile.
gems_of() { [[ $1 == frameworks ]] && echo http/test/frameworks || echo "jobs/test/rails/$1"; }

# missing_rails_tools: what the gems nokogiri and sqlite3 are built with. Debian's RubyGems takes none of their builds.
missing_rails_tools() {
  needs rails && [[ -e /etc/debian_version ]] || return 0
  [[ -e $include_folder/libxml2/libxml/xmlversion.h ]] || printf 'libxml2-dev\n'
  [[ -e $include_folder/libxslt/xslt.h ]] || printf 'libxslt1-dev\n'
  [[ -e $include_folder/sqlite3.h ]] || printf 'libsqlite3-dev\n'
  [[ -e $include_folder/zlib.h ]] || printf 'zlib1g-dev\n'
  command -v pkg-config >/dev/null || printf 'pkg-config\n'
}

rails_stamp() { printf '%s/rails-%s-%s' "$state" "$2" "$(version_of "$1")"; }

wanted_rails() {
  fingerprint "$(path_of "$1")" "$(gems_of "$2")"/Gemfile{,.lock} \
    {runtime/ringspun,jobs/ringspun-jobs,http/ringspun-http}.gemspec runtime/lib/ringspun/version.rb
}

# make_rails_ready NAME
make_rails_ready() {
  local version
  for version in $(rails_versions "$1"); do
    [[ "$(cat "$(rails_stamp "$1" "$version")" 2>/dev/null)" == "$(wanted_rails "$1" "$version")" ]] || install_rails "$1" "$version"
  done
}

# install_rails NAME VERSION: what the system has is not built again, which takes minutes.
install_rails() {
  say "Installing Rails $2 for Ruby $(version_of "$1") into vendor/bundle"
  local options=()
  if pkg-config --exists libxml-2.0 libxslt sqlite3 2>/dev/null; then
    options=(BUNDLE_BUILD__NOKOGIRI=--use-system-libraries BUNDLE_BUILD__SQLITE3=--enable-system-libraries)
  fi
  (
    export BUNDLE_GEMFILE="$root/$(gems_of "$2")/Gemfile" BUNDLE_PATH="$root/vendor/bundle" BUNDLE_VERSION=system \
      "${options[@]}"
    install_bundle "$(path_of "$1")" "rails-$2"
  )
  wanted_rails "$1" "$2" >"$(rails_stamp "$1" "$2")"
}
