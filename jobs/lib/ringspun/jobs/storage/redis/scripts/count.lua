-- with: keys count
-- Adds to the counts of jobs. ARGV: the namespace's prefix, how many more were processed, how many more have failed.
begin_writing()
count('processed', tonumber(ARGV[2]))
count('failed', tonumber(ARGV[3]))
