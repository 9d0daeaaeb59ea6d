-- See Wire::RESERVED.
local function is_reserved(queue) return queue == 'ringspun-quarantine' or string.sub(queue, 1, 8) == 'backup::' end

-- Puts an entry into the queue that it names, and adds the time if it has none; its other bytes stay. Returns nil if it is no
-- job, if that queue is reserved, or if its key has another type.
local function enqueue(entry, stamp)
  local job = job_of(entry)
  if not job or is_reserved(job['queue']) then return nil end
  if job['enqueued_at'] == nil then
    local _, brace = string.find(entry, '^%s*{')
    entry = '{"enqueued_at":' .. stamp .. ',' .. string.sub(entry, brace + 1)
  end
  local pushed = line_up(job['queue'], entry, 'LPUSH')
  if type(pushed) == 'table' then
    if string.find(pushed.err, '^WRONGTYPE') then return nil end
    error(pushed.err)
  end
  redis.call('SADD', key('queues'), job['queue'])
  return job
end
