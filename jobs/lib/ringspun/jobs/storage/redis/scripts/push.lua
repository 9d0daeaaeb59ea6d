-- with: keys clock priority wake push
-- Stores jobs that need the server's clock or a lock, or have a priority.
-- ARGV: the namespace's prefix, milliseconds within which a push with a lock may be sent again, then six for each push.
-- Returns for each what `push` returns.
local now = clock()
local answers = {}
for i = 3, #ARGV, 6 do answers[#answers + 1] = push(i, now, ARGV[2]) end
deal()
return answers
