-- with: count
-- ARGV: the namespace's prefix, how many more were processed, how many more have failed.
count(ARGV[1], 'processed', tonumber(ARGV[2]))
count(ARGV[1], 'failed', tonumber(ARGV[3]))
