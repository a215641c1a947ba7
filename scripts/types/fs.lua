---@meta fs

-- Written by obelus types, which writes it again: changes are lost.

---fs: files and folders, as far as the permissions read and write go.
---@class obelus.fs
local fs = {}

---What fs.stat tells: the size in bytes, and when it was modified, in seconds
---since 1970.
---@class obelus.fs.Stat
---@field type "file"|"folder"|"other"
---@field size integer
---@field modified number

---Makes the file if there is none.
---@param path string
---@param text string
---@return true?
---@return string? err
function fs.append(path, text) end

---@param path string
---@return boolean?
---@return string? err
function fs.exists(path) end

---The names in a folder, sorted.
---@param folder string
---@return string[]? names
---@return string? err
function fs.list(folder) end

---Makes a folder, with those above it.
---@param path string
---@return true?
---@return string? err
function fs.mkdir(path) end

---@param path string
---@return string? text
---@return string? err
function fs.read(path) end

---Removes a file or an empty folder.
---@param path string
---@return true?
---@return string? err
function fs.remove(path) end

---@param path string
---@return obelus.fs.Stat?
---@return string? err
function fs.stat(path) end

---Writes a file, in place of what was there.
---@param path string
---@param text string
---@return true?
---@return string? err
function fs.write(path, text) end

return fs
