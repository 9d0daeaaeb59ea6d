-- with: keys priority
-- Removes entries from a queue. ARGV: the namespace's prefix, the queue, then the entries. Returns 1 for each that was there, and
-- else 0.
local answers = {}
begin_writing()
for i = 3, #ARGV do answers[#answers + 1] = remove_from(ARGV[2], ARGV[i]) end
deal()
return answers
