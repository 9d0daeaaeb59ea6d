-- Adds an event to the history of a job, see Storage#history. `text`: JSON members, the kind first. Nothing depends on it, so it
-- fails silently. A key says whether there are any histories at all: so a job that is done is not looked for where nobody has
-- one.
local function note(jid, text, node, score, lasts)
  if lasts == '0' or jid == '' then return end
  local list = key('ringspun:history:' .. jid)
  local place = node and ',"node":' .. cjson.encode(node) or ''
  redis.pcall('RPUSH', list, '{"at":' .. score .. place .. ',' .. text .. '}')
  redis.pcall('LTRIM', list, -25, -1)
  redis.pcall('PEXPIRE', list, lasts)
  redis.pcall('SET', key('ringspun:histories'), '1', 'PX', lasts)
end

-- Jobs are done without having anything to say. Those to which something has happened before get an end.
local function note_done(jids, node, score, lasts)
  if lasts == '0' or #jids == 0 or redis.call('EXISTS', key('ringspun:histories')) == 0 then return end
  for i = 1, #jids, 1000 do
    local lists = {}
    for j = i, math.min(i + 999, #jids) do lists[#lists + 1] = key('ringspun:history:' .. jids[j]) end
    if redis.call('EXISTS', unpack(lists)) > 0 then
      for j, list in ipairs(lists) do
        if redis.call('EXISTS', list) == 1 then note(jids[i + j - 1], '"kind":"done"', node, score, lasts) end
      end
    end
  end
end
