-- with: keys count
-- Adds to the counts of jobs. ARGV: the namespace's prefix, how many more were processed, how many more have failed, and how many
-- more runs were of jobs that were taken away.
begin_writing()
if ARGV[4] ~= '0' then redis.call('INCRBY', key('ringspun:twice'), ARGV[4]) end
count('processed', tonumber(ARGV[2]))
count('failed', tonumber(ARGV[3]))
