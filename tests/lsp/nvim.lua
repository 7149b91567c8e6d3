-- SPDX-License-Identifier: MIT OR Apache-2.0
-- Runs in `nvim --headless`: opens a file with an error, takes its diagnostic, hovers,
-- renames and formats. Prints "fine" or what is wrong.
local vyre, file = vim.env.VYRE, vim.env.VYRE_FILE

local function fail(...)
  io.stdout:write("FAIL " .. table.concat(vim.tbl_map(tostring, { ... }), " ") .. "\n")
  vim.cmd("cquit 1")
end

local function wait(name, condition)
  if not vim.wait(20000, condition, 20) then fail("no " .. name) end
end

vim.cmd("edit " .. file)
vim.bo.filetype = "vyre"
local id = vim.lsp.start_client({ name = "vyre", cmd = { vyre, "lsp" }, root_dir = vim.fn.getcwd() })
if not id then fail("no client") end
vim.lsp.buf_attach_client(0, id)
wait("diagnostics", function() return #vim.diagnostic.get(0) > 0 end)
local found = vim.diagnostic.get(0)[1]
if not found.message:find("Fix: write var total : i32 = value;", 1, true) then fail(found.message) end
if found.lnum ~= 5 or found.col ~= 17 then fail("position", found.lnum, found.col) end

local function ask(method, params)
  local answers = vim.lsp.buf_request_sync(0, method, params, 20000)
  if not answers then fail("no answer to " .. method) end
  for _, answer in pairs(answers) do
    if answer.err then fail(method, vim.inspect(answer.err)) end
    return answer.result
  end
end

local action = ask("textDocument/codeAction", {
  textDocument = vim.lsp.util.make_text_document_params(),
  range = { start = { line = 5, character = 0 }, ["end"] = { line = 5, character = 40 } },
  context = { diagnostics = {} },
})[1]
vim.lsp.util.apply_workspace_edit(action.edit, "utf-16")
wait("valid file", function() return #vim.diagnostic.get(0) == 0 end)
local line = vim.api.nvim_buf_get_lines(0, 5, 6, false)[1]
if line ~= "    /* ä𝄞 */ var total : i32 = 0;" then fail(line) end

vim.api.nvim_win_set_cursor(0, { 6, #line - 12 })
local at = vim.lsp.util.make_position_params(0, "utf-16")
local hover = ask("textDocument/hover", at)
if not hover.contents.value:find("var total : i32", 1, true) then fail(hover.contents.value) end
at.newName = "renamed"
vim.lsp.util.apply_workspace_edit(ask("textDocument/rename", at), "utf-16")
line = vim.api.nvim_buf_get_lines(0, 6, 7, false)[1]
if line ~= "  y[0]   = f32(renamed);" then fail(line) end
local edits = ask("textDocument/formatting", {
  textDocument = vim.lsp.util.make_text_document_params(),
  options = { tabSize = 4, insertSpaces = true },
})
vim.lsp.util.apply_text_edits(edits, 0, "utf-16")
local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
if not text:find("\n    y[0] = f32(renamed);\n", 1, true) then fail(text) end
io.stdout:write("fine\n")
vim.cmd("quitall!")
