package store

import "github.com/redis/go-redis/v9"

// What stands in Redis, each key behind the prefix:
//
//	state        hash: origin; fence, of the newest holder of the lease; and what is new:
//	             d:KEY   the number of a document's newest version, a blank, its mark
//	             h:KEY   a mark that is new whenever the versions of a document change
//	             t:KEY   up to which number versions were forgotten, beyond the bounds
//	             p:KIND  the number of what was published last
//	             e:KIND  how often entries were announced
//	doc:KEY      hash: the number of a version → its mark, and a line of JSON
//	body:KEY     hash: the number of a version → its body; "bytes" → of all of them
//	pub:KIND     hash: number, fence, at, body; floor, which numbers to come are above
//	entries:KIND set: the keys of entries, those that are gone among them
//	entry:KIND:KEY  the body of an entry, for its time
//	lease        who has it, for its time
//	changed      the channel: state has changed
//
// Scripts are atomic, and no other way is used to change more than one key. All their
// arguments are strings; numbers of versions stay far below 2^53, up to where Lua
// counts exactly. They use what Redis 7.0 has.

// luaTrim forgets the oldest versions beyond the bounds: most versions, most bytes. It
// never forgets the last one. It returns the number of the newest that was forgotten.
const luaTrim = `
local function trim(doc, body, most, mostBytes)
  local last = 0
  local count = redis.call('HLEN', doc)
  local bytes = tonumber(redis.call('HGET', body, 'bytes'))
  if count <= most and bytes <= mostBytes then return last end
  local numbers = redis.call('HKEYS', doc)
  for i = 1, #numbers do numbers[i] = tonumber(numbers[i]) end
  table.sort(numbers)
  for i = 1, #numbers - 1 do
    if count <= most and bytes <= mostBytes then break end
    local n = string.format('%.0f', numbers[i])
    bytes = bytes - redis.call('HSTRLEN', body, n)
    redis.call('HDEL', doc, n)
    redis.call('HDEL', body, n)
    count = count - 1
    last = numbers[i]
  end
  redis.call('HSET', body, 'bytes', string.format('%.0f', bytes))
  return last
end
`

// scriptState returns the state: field, value, field, value …
//
//	KEYS  state
//	ARGV  most fields
var scriptState = redis.NewScript(`
if redis.call('HLEN', KEYS[1]) > tonumber(ARGV[1]) then
  return redis.error_reply('TOOBIG the state has more than a router keeps')
end
return redis.call('HGETALL', KEYS[1])
`)

// scriptPut adds versions of a document, and does nothing if its newest is another than
// expected: then it returns the newest that there is.
//
// A version above the newest becomes the newest one; one below completes the history.
// The last mark again is the same edit, sent again because the answer was lost.
//
//	KEYS  state, doc, body, changed
//	ARGV  key, expected newest or "", most versions, most bytes, most documents, up to
//	      which number versions were forgotten, a new mark of the history, and for each
//	      version: number, mark, line, body
var scriptPut = redis.NewScript(luaTrim + `
local field = 'd:' .. ARGV[1]
local newest = redis.call('HGET', KEYS[1], field) or ''
if newest == ARGV[#ARGV - 3] .. ' ' .. ARGV[#ARGV - 2] then return {'1', ''} end
local top = string.match(newest, '^%d+') or '0'
if newest ~= ARGV[2] then return {'0', newest} end
if newest == '' then
  local count = 0
  for _, f in ipairs(redis.call('HKEYS', KEYS[1])) do
    if string.sub(f, 1, 2) == 'd:' then count = count + 1 end
  end
  if count >= tonumber(ARGV[5]) then return redis.error_reply('TOOBIG there are as many documents as a router takes') end
end
for i = 8, #ARGV, 4 do
  local n, mark, line, body = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local old = redis.call('HSTRLEN', KEYS[3], n)
  redis.call('HSET', KEYS[2], n, mark .. line)
  redis.call('HSET', KEYS[3], n, body)
  redis.call('HINCRBY', KEYS[3], 'bytes', string.format('%.0f', #body - old))
  if tonumber(n) > tonumber(top) then
    top = n
    redis.call('HSET', KEYS[1], field, n .. ' ' .. mark)
  end
end
local forgotten = math.max(trim(KEYS[2], KEYS[3], tonumber(ARGV[3]), tonumber(ARGV[4])), tonumber(ARGV[6]))
if forgotten > tonumber(redis.call('HGET', KEYS[1], 't:' .. ARGV[1]) or '0') then
  redis.call('HSET', KEYS[1], 't:' .. ARGV[1], string.format('%.0f', forgotten))
end
redis.call('HSET', KEYS[1], 'h:' .. ARGV[1], ARGV[7])
redis.call('PUBLISH', KEYS[4], '')
return {'1', ''}
`)

// scriptRead returns a version with its body, the newest one for number 0.
//
//	KEYS  state, doc, body
//	ARGV  key, number, most bytes
var scriptRead = redis.NewScript(`
local n = ARGV[2]
if n == '0' then
  n = string.match(redis.call('HGET', KEYS[1], 'd:' .. ARGV[1]) or '', '^%d+')
  if not n then return {} end
end
local line = redis.call('HGET', KEYS[2], n)
if not line then return {} end
if redis.call('HSTRLEN', KEYS[3], n) > tonumber(ARGV[3]) then
  return redis.error_reply('TOOBIG the body is greater than a router takes')
end
return {n, line, redis.call('HGET', KEYS[3], n) or ''}
`)

// scriptHistory returns up to which number versions were forgotten, and the newest
// versions: number, line, number, line …, the newest first.
//
//	KEYS  state, doc
//	ARGV  key, how many
var scriptHistory = redis.NewScript(`
local numbers = redis.call('HKEYS', KEYS[2])
for i = 1, #numbers do numbers[i] = tonumber(numbers[i]) end
table.sort(numbers, function(a, b) return a > b end)
local out = {redis.call('HGET', KEYS[1], 't:' .. ARGV[1]) or '0'}
for i = 1, math.min(#numbers, tonumber(ARGV[2])) do
  local n = string.format('%.0f', numbers[i])
  out[#out + 1] = n
  out[#out + 1] = redis.call('HGET', KEYS[2], n)
end
return out
`)

// scriptOrigin makes ARGV[1] the origin if there is none, or, when ARGV[2] is 1, if it
// is older. It returns the origin.
//
//	KEYS  state
var scriptOrigin = redis.NewScript(`
local origin = redis.call('HGET', KEYS[1], 'origin')
if not origin or (ARGV[2] == '1' and ARGV[1] < origin) then
  origin = ARGV[1]
  redis.call('HSET', KEYS[1], 'origin', origin)
end
return origin
`)

// scriptEntries returns the entries of a kind, with what remains of their time: key,
// milliseconds, body …, and forgets the keys of those that are gone.
//
//	KEYS  entries
//	ARGV  prefix of an entry, most bytes
var scriptEntries = redis.NewScript(`
local out, bytes = {}, 0
for _, key in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local at = ARGV[1] .. key
  local left = redis.call('PTTL', at)
  if left <= 0 then
    redis.call('SREM', KEYS[1], key)
  else
    bytes = bytes + redis.call('STRLEN', at)
    if bytes > tonumber(ARGV[2]) then
      return redis.error_reply('TOOBIG the entries are more than a router takes')
    end
    out[#out + 1] = key
    out[#out + 1] = left
    out[#out + 1] = redis.call('GET', at)
  end
end
return out
`)

// scriptLease gives the lease to ARGV[1] for ARGV[2] milliseconds, or prolongs it. It
// returns the newest fence and whether it is held. ARGV[3] is a fence that was seen: when
// that is higher, or there is none, Redis may have lost its memory, and fences that others
// may hold are passed over.
//
//	KEYS  state, lease
var scriptLease = redis.NewScript(`
local fence = tonumber(redis.call('HGET', KEYS[1], 'fence') or '-1')
local seen = tonumber(ARGV[3])
local holder = redis.call('GET', KEYS[2])
if fence < seen then fence = seen + ` + skip + ` end
if holder == ARGV[1] then
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
elseif not holder then
  fence = fence + 1
  redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
end
redis.call('HSET', KEYS[1], 'fence', string.format('%.0f', fence))
return {string.format('%.0f', fence), (not holder or holder == ARGV[1]) and 1 or 0}
`)

// skip is how many fences and numbers of publications are passed over when Redis has
// lost its memory: more than can have been given without anybody left who saw it.
const skip = "1000"

// scriptRelease gives the lease up if ARGV[1] has it.
//
//	KEYS  lease
var scriptRelease = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
`)

// scriptPublish publishes a body under the next number, which it returns, or 0 when the
// fence is not the newest. ARGV[5] is a number that was seen: when that is higher, or
// there is none, Redis may have lost its memory.
//
//	KEYS  state, pub, changed
//	ARGV  kind, fence, at, body, seen
var scriptPublish = redis.NewScript(`
if ARGV[2] == '0' or redis.call('HGET', KEYS[1], 'fence') ~= ARGV[2] then return '0' end
local last = redis.call('HMGET', KEYS[2], 'number', 'floor')
local number, seen = tonumber(last[1] or '-1'), tonumber(ARGV[5])
if number < seen then number = seen + ` + skip + ` end
number = string.format('%.0f', math.max(number, tonumber(last[2] or '0')) + 1)
redis.call('HSET', KEYS[2], 'number', number, 'fence', ARGV[2], 'at', ARGV[3], 'body', ARGV[4])
redis.call('HSET', KEYS[1], 'p:' .. ARGV[1], number)
redis.call('PUBLISH', KEYS[3], '')
return number
`)

// scriptRestore puts back what was published, if it is newer than what is there.
//
//	KEYS  state, pub, changed
//	ARGV  kind, number, fence, at, body
var scriptRestore = redis.NewScript(`
local last = redis.call('HMGET', KEYS[2], 'number', 'floor')
local number = tonumber(ARGV[2])
if tonumber(last[1] or '0') >= number then return 0 end
local floor = string.format('%.0f', math.max(tonumber(last[2] or '0'), number + ` + skip + `))
redis.call('HSET', KEYS[2], 'number', ARGV[2], 'fence', ARGV[3], 'at', ARGV[4], 'body', ARGV[5], 'floor', floor)
redis.call('HSET', KEYS[1], 'p:' .. ARGV[1], ARGV[2])
redis.call('PUBLISH', KEYS[3], '')
return 1
`)

// scriptPublished returns what was published: number, fence, at, body.
//
//	KEYS  pub
//	ARGV  most bytes
var scriptPublished = redis.NewScript(`
if redis.call('HSTRLEN', KEYS[1], 'body') > tonumber(ARGV[1]) then
  return redis.error_reply('TOOBIG the body is greater than a router takes')
end
local p = redis.call('HMGET', KEYS[1], 'number', 'fence', 'at', 'body')
if not p[1] then return {} end
return p
`)
