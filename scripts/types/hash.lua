---@meta hash

-- Written by obelus types, which writes it again: changes are lost.

---hash: digests, in hexadecimal digits or raw bytes.
---@class obelus.hash
local hash = {}

---8 hexadecimal digits, by the polynomial of zip and PNG.
---@param text string
---@return string digits
function hash.crc32(text) end

---@param algorithm "md5"|"sha1"|"sha256"|"sha512"
---@param key string
---@param text string
---@param options? { raw?: boolean } raw: bytes, not digits
---@return string digest
function hash.hmac(algorithm, key, text, options) end

---It is no protection against forgery.
---@param text string
---@param options? { raw?: boolean } raw: bytes, not digits
---@return string digest
function hash.md5(text, options) end

---It is no protection against forgery.
---@param text string
---@param options? { raw?: boolean } raw: bytes, not digits
---@return string digest
function hash.sha1(text, options) end

---@param text string
---@param options? { raw?: boolean } raw: bytes, not digits
---@return string digest
function hash.sha256(text, options) end

---@param text string
---@param options? { raw?: boolean } raw: bytes, not digits
---@return string digest
function hash.sha512(text, options) end

return hash
