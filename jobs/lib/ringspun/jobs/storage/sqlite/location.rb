# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # Where a file may be.
        #
        # @api private
        module Location
          # File systems on which several hosts may be, for the locks and the shared memory of a file in WAL mode are of one host:
          # https://www.sqlite.org/wal.html
          NETWORK = %w[nfs nfs4 cifs smb2 smb3 smbfs afs ceph glusterfs lustre gpfs beegfs fuse.sshfs fuse.glusterfs fuse.s3fs
                       fuse.rclone fuse.vmhgfs-fuse fuse.grpcfuse vboxsf prl_fs].freeze
          # Errors that the system gives for such a file each time. All others, such as that a process has too many files open,
          # may end by themselves.
          FOR_GOOD = [Errno::EACCES, Errno::EPERM, Errno::EROFS, Errno::ENOENT, Errno::ENOTDIR, Errno::EISDIR, Errno::ELOOP,
                      Errno::ENAMETOOLONG, Errno::EINVAL, ArgumentError, EncodingError].freeze
          # What SQLite takes for no file.
          NO_FILE = { ":memory:" => "for jobs in memory write memory", "file:" => "leave out file:" }.freeze
          # The longest name and path in bytes: Linux and SQLite take a little more, and there are files beside it.
          NAME_MAX = 240
          PATH_MAX = 500
          # What is beside a file.
          BESIDE = %w[-locks -wal -shm].freeze
          private_constant :NETWORK, :NO_FILE, :NAME_MAX, :PATH_MAX, :BESIDE

          module_function

          # Makes the file, for its owner alone, unless it is there. One that is there is not opened here: whoever closes it
          # loses the locks that SQLite has on it in this process.
          #
          # @param path [String]
          # @return [String] without symbolic links and relative parts, by which all of a process know the file
          # @raise [ConfigError]
          # @raise [UnavailableError] the system cannot open or make it now
          def prepare(path)
            refuse_name(path)
            folder = File.dirname(File.expand_path(path))
            raise ConfigError, "there is no folder #{folder} for #{path}; make it first" unless File.directory?(folder)

            whole = File.join(File.realpath(folder), File.basename(path))
            whole = File.realpath(whole) if File.symlink?(whole)
            refuse_network(File.dirname(whole))
            make(whole) unless File.exist?(whole)
            raise ConfigError, "#{path} is no file but a #{File.ftype(whole)}; name another one" unless File.file?(whole)

            refuse_unwritable(whole)
            whole
          rescue *FOR_GOOD => error
            raise ConfigError, "#{path} cannot be a file for jobs: #{error.message}"
          rescue SystemCallError => error
            raise UnavailableError, "#{path} cannot be used: #{error.message}"
          end

          # @param path [String]
          # @return [Array(Integer, Integer), nil] which file it is; nil: there is none
          def identity(path)
            stat = File.stat(path)
            [stat.dev, stat.ino]
          rescue Errno::ENOENT
            nil
          end

          # @return [Boolean] whether both are the same file, or would be
          def same?(one, other) = one == other || (!identity(one).nil? && identity(one) == identity(other))

          # @param file [Array(Integer, Integer), nil] see {identity}
          # @return [Boolean] whether this process has it open
          def open?(file) = !file.nil? && open_files.any? { |one,| one == file }

          # Other threads open and close files meanwhile, so a refusal needs two looks: see {surely?}.
          #
          # @param process [Integer, String]
          # @return [Array<Array(Array(Integer, Integer), String)>] for each of its descriptors the file, and the kernel's name
          # @raise [SystemCallError] it has ended, or is another user's
          def open_files(process = "self")
            folder = "/proc/#{process}/fd"
            Dir.children(folder).filter_map { |number| open_file("#{folder}/#{number}") }
          end

          # The number may be given to another file between two system calls.
          def open_file(descriptor)
            name = File.readlink(descriptor)
            file = identity(descriptor)
            same = File.readlink(descriptor) == name && identity(descriptor) == file
            same ? [file, name.b] : open_file(descriptor)
          rescue SystemCallError # it was closed meanwhile
            nil
          end

          # @yieldreturn [Boolean] what one look at the descriptors of a process says
          # @return [Boolean] whether two say so
          def surely? = 2.times.all? { yield }

          # @raise [ConfigError]
          def refuse_unknown(path)
            raise ConfigError, "#{path} is open in this process, and nobody knows by which copy of SQLite; two of them drop " \
                               "each other's locks on it. Give jobs a file of their own, or say by which gem the program opens " \
                               "it, as in { name: :sqlite, path: #{path.inspect}, library: :sqlite3 }"
          end

          def refuse_name(path)
            name = File.basename(path)
            hint = NO_FILE.find { |beginning, _| name.start_with?(beginning) }&.last
            raise ConfigError, "the storage sqlite needs the path of a file, got #{path}; #{hint}" if hint
            raise ConfigError, "the name of the file #{path} is longer than #{NAME_MAX} bytes; name another one" if
              name.bytesize > NAME_MAX
            raise ConfigError, "#{path} is longer than #{PATH_MAX} bytes; name another file" if path.bytesize > PATH_MAX
          end

          # Whatever the umask of the process.
          def make(path)
            File.open(path, File::WRONLY | File::CREAT | File::EXCL, 0o600) { |file| file.chmod(0o600) }
          rescue Errno::EEXIST # another process was first
            nil
          end

          # SQLite would say that it cannot open the file, and that may end by itself.
          def refuse_unwritable(path)
            there, missing = [path, *BESIDE.map { |part| "#{path}#{part}" }].partition { |name| File.exist?(name) }
            there << File.dirname(path) if missing.any?
            wrong = there.find { |name| !File.writable?(name) && File.exist?(name) } or return # a -wal may go meanwhile
            raise ConfigError, "#{wrong} cannot be written by this process. All that share a file of jobs must be able to " \
                               "write to it and to what is beside it, most simply as one user"
          end

          def refuse_network(folder)
            kind = file_system(File.stat(folder).dev)
            return unless NETWORK.include?(kind)

            raise ConfigError, "#{folder} is on #{kind}, which several hosts can share; SQLite needs a local disk"
          end

          # See https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html
          #
          # @param device [Integer]
          # @param mounts [String] the file that says what is mounted
          # @return [String, nil] its kind; nil: it is not known
          def file_system(device, mounts = "/proc/self/mountinfo")
            number = "#{device >> 8 & 0xfff}:#{(device & 0xff) | (device >> 12 & 0xfff00)}"
            line = File.foreach(mounts, mode: "rb").find { |each| each.split[2] == number }
            line && line.split(" - ").last.split.first
          rescue Errno::ENOENT
            nil
          end
          private_class_method :refuse_name, :make, :refuse_unwritable, :refuse_network
        end
        private_constant :Location
      end
    end
  end
end
