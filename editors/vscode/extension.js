// SPDX-License-Identifier: MIT OR Apache-2.0
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const command = workspace.getConfiguration("vyre").get("path");
  client = new LanguageClient(
    "vyre",
    "vyre",
    { command, args: ["lsp"] },
    { documentSelector: [{ language: "vyre" }] },
  );
  return client.start();
};

exports.deactivate = () => client && client.stop();
