#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests `vyre lsp` with a client of its own.  client.py VYRE [SOURCE]

Speaks JSON-RPC over pipes. Positions in the tests are found by searching the text, and
converted to UTF-16 units here, so they share no code with the server.
"""
import json
import os
import subprocess
import sys
import threading
import time

VYRE = sys.argv[1]
failures = []
passed = 0


def check(name, condition, shown=""):
    global passed
    if condition:
        passed += 1
    else:
        failures.append(name)
        print(f"FAIL {name}: {shown}")


def units(text):
    """Returns the number of UTF-16 units of a text."""
    return len(text.encode("utf-16-le")) // 2


def position(text, part, nth=0, after=0):
    """Returns the position of the nth occurrence of part, plus some characters."""
    at = -1
    for _ in range(nth + 1):
        at = text.index(part, at + 1)
    at += after
    line = text.count("\n", 0, at)
    start = text.rfind("\n", 0, at) + 1
    return {"line": line, "character": units(text[start:at])}


def offset(text, pos):
    """Returns the index of a position."""
    lines = text.split("\n")
    at = sum(len(line) + 1 for line in lines[: pos["line"]])
    count = 0
    for c in lines[pos["line"]]:
        if count >= pos["character"]:
            break
        count += units(c)
        at += 1
    return at


def apply(text, edits):
    """Returns the text after the edits."""
    for edit in sorted(edits, key=lambda e: offset(text, e["range"]["start"]), reverse=True):
        start = offset(text, edit["range"]["start"])
        end = offset(text, edit["range"]["end"])
        text = text[:start] + edit["newText"] + text[end:]
    return text


def frame(message):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


class Client:
    def __init__(self, initialise=True):
        self.process = subprocess.Popen([VYRE, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.next = 1
        self.inbox = []
        self.arrived = threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()
        if initialise:
            self.capabilities = self.request("initialize", {"capabilities": {}})["result"]["capabilities"]
            self.notify("initialized", {})

    def read(self):
        stream = self.process.stdout
        while True:
            length = None
            while True:
                line = stream.readline()
                if line in (b"", b"\r\n"):
                    break
                name, value = line.decode().split(":")
                if name.lower() == "content-length":
                    length = int(value)
            with self.arrived:
                self.inbox.append(json.loads(stream.read(length)) if length else None)
                self.arrived.notify_all()
            if not length:
                return

    def send(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def notify(self, method, params):
        self.send(frame({"jsonrpc": "2.0", "method": method, "params": params}))

    def wait(self, accept, name):
        """Returns the first message that is accepted and removes it."""
        with self.arrived:
            for _ in range(200):
                for message in self.inbox:
                    if message is not None and accept(message):
                        self.inbox.remove(message)
                        return message
                if None in self.inbox:
                    break
                self.arrived.wait(0.1)
        raise AssertionError(f"no answer to {name}")

    def request(self, method, params):
        number = self.next
        self.next += 1
        self.send(frame({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
        return self.wait(lambda m: m.get("id") == number and "method" not in m, method)

    def open(self, uri, text, version=1):
        self.notify("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "vyre", "version": version, "text": text}})
        return self.diagnostics(uri)

    def change(self, uri, changes, version=2):
        self.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": changes})
        return self.diagnostics(uri)

    def diagnostics(self, uri):
        message = self.wait(lambda m: m.get("method") == "textDocument/publishDiagnostics" and m["params"]["uri"] == uri, "diagnostics")
        return message["params"]["diagnostics"]

    def at(self, method, uri, pos, **more):
        return self.request("textDocument/" + method, {"textDocument": {"uri": uri}, "position": pos, **more})

    def close(self):
        self.request("shutdown", None)
        self.notify("exit", None)
        return self.process.wait(20)


GOOD = """// ä 𝄞
const TILE = 64u;

fn scale(v: f32, by: f32) -> f32 {
    return v * by;
}

kernel k workgroup(TILE) over(y)
buffer x : read f32[] @0;
buffer y : read_write f32[] @1;
uniform a : f32 @2;
shared tile : f32[TILE];
{
    let i = global_id.x; /* ä𝄞 */ var total = 0.0;
    tile[local_id.x] = a;
    barrier();
    for (let k = 0u; k < 4; k++) {
        total += tile[k];
    }
    if (i < len(x)) y[i] = scale(x[i], total) + tile[local_id.x];
}
"""


def life_cycle():
    client = Client()
    check("positions are UTF-16", client.capabilities["positionEncoding"] == "utf-16")
    check("changes are incremental", client.capabilities["textDocumentSync"]["change"] == 2)
    check("initialize twice is refused", client.request("initialize", {})["error"]["code"] == -32600)
    check("an unknown method is refused", client.request("textDocument/unknown", {})["error"]["code"] == -32601)
    client.notify("textDocument/unknown", {})
    check("shutdown returns null", client.request("shutdown", None)["result"] is None)
    check("a request after shutdown is refused", client.request("textDocument/hover", {})["error"]["code"] == -32600)
    client.notify("exit", None)
    check("exit after shutdown is clean", client.process.wait(20) == 0)
    client = Client(initialise=False)
    check("a request before initialize is refused", client.request("textDocument/hover", {})["error"]["code"] == -32002)
    client.notify("exit", None)
    check("exit without shutdown is an error", client.process.wait(20) == 1)
    client = Client()
    client.process.stdin.close()
    check("the end of the input without exit is an error", client.process.wait(20) == 1)


def documents():
    client = Client()
    uri, other = "file:///a.vyre", "file:///b%20c.vyre"
    check("a good file has no diagnostics", client.open(uri, GOOD) == [])
    bad = GOOD.replace("/* ä𝄞 */ var total = 0.0;", "/* ä𝄞 */ int total = 0.0;")
    found = client.open(other, bad)
    check("a bad file has one", len(found) == 1, found)
    check("it names the rule", found[0]["code"] == "V018", found)
    check("it starts after a surrogate pair", found[0]["range"]["start"] == position(bad, "int total"), found)
    check("it has the fix", "\nFix: write var total : i32 = value;" in found[0]["message"], found)
    start, end = position(bad, "int total"), position(bad, "int total", after=9)
    found = client.change(other, [{"range": {"start": start, "end": end}, "text": "var total"}])
    check("an incremental change corrects it", found == [], found)
    # Two changes in one message: the second one refers to the text after the first.
    text = GOOD
    first = {"range": {"start": position(text, "var total"), "end": position(text, "var total", after=3)}, "text": "let 𝄞"}
    between = text.replace("var total", "let 𝄞 total", 1)
    second = {"range": {"start": position(between, "let 𝄞"), "end": position(between, "let 𝄞", after=5)}, "text": "var"}
    found = client.change(other, [first, second], 3)
    check("changes apply one after the other", found == [], found)
    check("the first document is untouched", client.at("hover", uri, position(GOOD, "total"))["result"] is not None)
    found = client.change(uri, [{"text": "kernel"}])
    check("a full change replaces the text", len(found) >= 1, found)
    far = {"line": 10**6, "character": 10**6}
    found = client.change(uri, [{"range": {"start": {"line": 0, "character": 0}, "end": far}, "text": GOOD}])
    check("positions outside are moved inside", found == [], found)
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    check("closing removes diagnostics", client.diagnostics(uri) == [])
    answer = client.at("hover", uri, position(GOOD, "total"))
    check("a closed document is refused", answer["error"]["code"] == -32602, answer)
    answer = client.at("hover", other, position(GOOD, "total"))
    check("the other one is still open", answer["result"] is not None, answer)
    check("the session ends", client.close() == 0)


def hover_text(client, uri, text, part, nth=0):
    result = client.at("hover", uri, position(text, part, nth))["result"]
    return result["contents"]["value"] if result else ""


def hover():
    client = Client()
    uri = "file:///h.vyre"
    client.open(uri, GOOD)
    said = hover_text(client, uri, GOOD, "total = 0.0")
    check("hover shows a declaration", "var total : f32" in said, said)
    said = hover_text(client, uri, GOOD, "i < len")
    check("hover shows the range", "[0, 4294967295]" in said, said)
    check("hover shows the level", "varies between invocations" in said, said)
    said = hover_text(client, uri, GOOD, "i = global_id")
    check("a declaration has the facts of its use", "[0, 4294967295]" in said, said)
    said = hover_text(client, uri, GOOD, "k]")
    check("hover shows the range of a loop", "[0, 3]" in said, said)
    check("a loop variable is uniform", "same in the dispatch" in said or "same in a workgroup" in said, said)
    said = hover_text(client, uri, GOOD, "tile[k]")
    check("an access is proven", "proven inside `tile`" in said, said)
    said = hover_text(client, uri, GOOD, "y[i]")
    check("an access is checked, with the reason", "checked in `y`" in said and "another buffer" in said, said)
    check("hover shows a buffer", "buffer y : read_write f32[]" in said, said)
    said = hover_text(client, uri, GOOD, "scale(x")
    check("hover shows a signature", "fn scale(v: f32, by: f32) -> f32" in said, said)
    said = hover_text(client, uri, GOOD, "TILE]")
    check("hover shows a const", "const TILE : u32" in said, said)
    said = hover_text(client, uri, GOOD, "local_id.x]", 0)
    check("hover shows a built-in id", "local_id" in said and "[0, 63]" in said, said)
    said = hover_text(client, uri, GOOD, "len(x)")
    check("hover shows a function", "len(buffer)" in said, said)
    said = hover_text(client, uri, GOOD, "4; k++")
    check("hover shows the type of a value", "u32" in said, said)
    check("a comment has no hover", hover_text(client, uri, GOOD, "ä 𝄞") == "")
    client.close()


def navigation():
    client = Client()
    uri = "file:///n.vyre"
    client.open(uri, GOOD)
    answer = client.at("definition", uri, position(GOOD, "scale(x"))["result"]
    check("definition of a fn", answer["range"]["start"] == position(GOOD, "scale(v"), answer)
    answer = client.at("definition", uri, position(GOOD, "total) +"))["result"]
    check("definition of a local", answer["range"]["start"] == position(GOOD, "total = 0.0"), answer)
    answer = client.at("definition", uri, position(GOOD, "over(y)", after=5))["result"]
    check("definition of a buffer that is used before", answer["range"]["start"] == position(GOOD, "y : read_write"), answer)
    answer = client.at("references", uri, position(GOOD, "tile["), context={"includeDeclaration": True})["result"]
    check("references with the declaration", len(answer) == 4, answer)
    answer = client.at("references", uri, position(GOOD, "tile["), context={"includeDeclaration": False})["result"]
    check("references without it", len(answer) == 3, answer)
    answer = client.at("definition", uri, position(GOOD, "barrier"))["result"]
    check("a keyword has no definition", answer is None, answer)
    answer = client.request("textDocument/documentSymbol", {"textDocument": {"uri": uri}})["result"]
    names = {s["name"]: s for s in answer}
    check("symbols of the file", list(names) == ["TILE", "scale", "k"], list(names))
    children = [s["name"] for s in names["k"]["children"]]
    check("symbols of a kernel", children == ["x", "y", "a", "tile", "i", "total", "k"], children)
    check("the range of a fn ends with it", names["scale"]["range"]["end"]["line"] == 5, names["scale"]["range"])
    client.close()


def imports():
    client = Client()
    base, uri = "file:///dir/base%20one.vyre", "file:///dir/main.vyre"
    text = 'import "base one.vyre" as b;\nkernel k workgroup(4)\nbuffer y : write f32[] @0;\n{ y[0] = b.half(2.0); }\n'
    library = "// halves\nfn half(x: f32) -> f32 { return x * 0.5; }\n"
    client.open(base, library)
    check("an import of an open document is valid", client.open(uri, text) == [])
    answer = client.at("definition", uri, position(text, "half(2.0"))["result"]
    good = answer["uri"] == base and answer["range"]["start"] == position(library, "half(x")
    check("a definition in an imported file", good, answer)
    answer = client.at("rename", uri, position(text, "half(2.0"), newName="third")
    check("a name of another file is not renamed here", "error" in answer, answer)
    client.notify("textDocument/didChange", {"textDocument": {"uri": base, "version": 2}, "contentChanges": [{"text": library.replace("* 0.5", "* 5")}]})
    client.diagnostics(base)
    found = client.diagnostics(uri)
    good = len(found) == 1 and found[0]["range"]["start"]["line"] == 0 and "/dir/base one.vyre:2:" in found[0]["message"]
    check("a mistake in an imported file is shown at the import", good, found)
    check("... with its place", found[0]["relatedInformation"][0]["location"]["uri"] == base, found)
    found = client.open("file:///dir/no.vyre", 'import "nowhere.vyre";\n')
    check("a missing import is reported", len(found) == 1 and found[0]["code"] == "V094", found)
    client.close()


def rename():
    client = Client()
    uri = "file:///r.vyre"
    client.open(uri, GOOD)
    answer = client.at("rename", uri, position(GOOD, "total"), newName="sum_of_all")["result"]
    new = apply(GOOD, answer["changes"][uri])
    check("rename changes all uses", new == GOOD.replace("total", "sum_of_all"), new)
    answer = client.at("rename", uri, position(GOOD, "v: f32"), newName="value")["result"]
    new = apply(GOOD, answer["changes"][uri])
    check("rename stays in its scope", "fn scale(value: f32" in new and "return value * by" in new and new.count("value") == 2, new)
    for name, why in (("i", "a local"), ("y", "a buffer"), ("barrier", "a keyword"), ("1x", "no name"), ("", "empty"), ("TILE", "a const")):
        answer = client.at("rename", uri, position(GOOD, "total"), newName=name)
        check(f"rename to {why} is refused", "error" in answer, answer)
    answer = client.at("prepareRename", uri, position(GOOD, "total"))["result"]
    check("prepareRename gives the name", answer["placeholder"] == "total", answer)
    check("a keyword cannot be renamed", "error" in client.at("prepareRename", uri, position(GOOD, "barrier")))
    client.change(uri, [{"text": GOOD + "}"}])
    check("a file with errors is refused", "error" in client.at("rename", uri, position(GOOD, "total"), newName="q"))
    client.close()


def actions():
    client = Client()
    uri = "file:///f.vyre"
    bad = GOOD.replace("var total = 0.0;", "float total = fmaf(a, a, a);")
    text = bad
    for _ in range(5):
        found = client.open(uri, text)
        if not found:
            break
        answer = client.request("textDocument/codeAction", {"textDocument": {"uri": uri}, "range": found[0]["range"], "context": {"diagnostics": found}})["result"]
        check("each error has an action", len(answer) >= 1, found)
        text = apply(text, answer[0]["edit"]["changes"][uri])
    want = GOOD.replace("var total = 0.0;", "var total : f32 = fma(a, a, a);")
    check("actions make a valid file", text == want, text)
    answer = client.request("textDocument/codeAction", {"textDocument": {"uri": uri}, "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}, "context": {"diagnostics": []}})["result"]
    check("no action without an error", answer == [], answer)
    ugly = "kernel  k workgroup( 64 )\n{\n}\n"
    client.open(uri, ugly)
    answer = client.request("textDocument/formatting", {"textDocument": {"uri": uri}, "options": {}})["result"]
    new = apply(ugly, answer)
    tool = subprocess.run([VYRE, "fmt", "-"], input=ugly, capture_output=True, text=True).stdout
    check("formatting equals vyre fmt", new == tool, new)
    client.open(uri, new)
    answer = client.request("textDocument/formatting", {"textDocument": {"uri": uri}, "options": {}})["result"]
    check("a formatted file has no edits", answer == [], answer)
    client.open(uri, "kernel (")
    answer = client.request("textDocument/formatting", {"textDocument": {"uri": uri}, "options": {}})
    check("a file with errors is not formatted", answer["result"] is None, answer)
    client.close()


def completion():
    client = Client()
    uri = "file:///c.vyre"
    client.open(uri, GOOD)

    def labels(pos):
        return {i["label"]: i for i in client.at("completion", uri, pos)["result"]}

    inside = labels(position(GOOD, "total += ", after=9))
    for name in ("i", "total", "k", "x", "tile", "scale", "TILE", "clamp", "barrier", "f32x3", "global_id"):
        check(f"completion has {name}", name in inside)
    check("it shows types", inside["total"]["detail"] == "f32", inside["total"])
    check("it shows forms", inside["clamp"]["detail"] == "clamp(x, low, high)", inside["clamp"])
    outside = labels(position(GOOD, "return v", after=7))
    check("names of other scopes are absent", "v" in outside and "total" not in outside and "tile" not in outside)
    check("components after a dot", set(labels(position(GOOD, "global_id.x", after=10))) == {"x", "y", "z", "w"})
    client.close()


def hostile():
    client = Client(initialise=False)
    client.send(b"Content-Length: 5\r\n\r\n{bad}")
    check("text that is no JSON", client.wait(lambda m: "error" in m, "error")["error"]["code"] == -32700)
    client.send(frame(b"[" * 5000))
    check("deep nesting", client.wait(lambda m: "error" in m, "error")["error"]["code"] == -32700)
    client.send(frame(b"[" * 50 + b"]" * 50))
    check("an array is no message", client.wait(lambda m: "error" in m, "error")["error"]["code"] == -32600)
    client.send(b"Content-Type: x\r\n\r\n")
    check("a frame without a length", client.wait(lambda m: "error" in m, "error")["error"]["code"] == -32700)
    client.send(b"Content-Length: -1\r\n\r\nContent-Length: 99999999999999999999\r\n\r\n")
    for _ in range(2):
        check("a wrong length", client.wait(lambda m: "error" in m, "error")["error"]["code"] == -32700)
    client.send(b"X" * 10000 + b"\r\n\r\n")
    check("a header that is too long", client.wait(lambda m: "error" in m, "error")["error"]["code"] == -32700)
    size = (64 << 20) + 1
    client.send(b"Content-Length: %d\r\n\r\n" % size)
    for _ in range(size // 65536 + 1):
        client.send(b" " * min(65536, size))
        size -= min(65536, size)
    check("a message that is too large", client.wait(lambda m: "error" in m, "error")["error"]["code"] == -32600)
    check("the session goes on", "result" in client.request("initialize", {}))
    for params in (None, 3, [], {}, {"textDocument": 1}, {"textDocument": {"uri": 1}}, {"textDocument": {"uri": "x"}}):
        for method in ("didOpen", "didChange", "didClose"):
            client.notify("textDocument/" + method, params)
        for method in ("hover", "rename", "codeAction", "completion", "formatting"):
            check("wrong parameters are refused", "error" in client.request("textDocument/" + method, params))
    uri = "file:///x.vyre"
    client.notify("textDocument/didOpen", {"textDocument": {"uri": uri, "text": "\u0000\x01", "version": 1}})
    check("control characters are reported", len(client.diagnostics(uri)) == 1)
    client.change(uri, [{"range": {"start": {"line": 5, "character": 5}, "end": {"line": 0, "character": 0}}, "text": "x"}])
    check("a backward range is accepted", client.at("hover", uri, {"line": 0, "character": 0})["result"] is None)
    answer = client.at("hover", uri, {"line": -1, "character": 2**31})
    check("positions out of range are refused", answer["error"]["code"] == -32602, answer)
    # One write: the cancellation arrives together with its request.
    big = GOOD * 200
    work = frame({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": {"uri": uri, "text": big, "version": 2}}})
    work += frame({"jsonrpc": "2.0", "id": "a", "method": "textDocument/documentSymbol", "params": {"textDocument": {"uri": uri}}})
    work += frame({"jsonrpc": "2.0", "id": "b", "method": "textDocument/documentSymbol", "params": {"textDocument": {"uri": uri}}})
    work += frame({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "b"}})
    client.send(work)
    check("a request is answered", "result" in client.wait(lambda m: m.get("id") == "a", "a"))
    check("a cancelled request is refused", client.wait(lambda m: m.get("id") == "b", "b")["error"]["code"] == -32800)
    # A long line: the time grows with its length, not with its square.
    line = "kernel k workgroup(64) buffer y : read_write f32[] @0; { " + "y[0] = 1.0; " * 30000 + "}"
    client.change(uri, [{"text": line}])
    began = time.monotonic()
    answer = client.at("references", uri, position(line, "y : "), context={"includeDeclaration": True})["result"]
    check("a long line has all references", len(answer) == 30001, len(answer))
    check("a long line takes little time", time.monotonic() - began < 10, time.monotonic() - began)
    check("the last one is right", answer[-1]["range"]["start"]["character"] == line.rindex("y[0]"), answer[-1])
    # One byte at a time.
    for byte in frame({"jsonrpc": "2.0", "id": "c", "method": "shutdown"}):
        client.send(bytes([byte]))
    check("frames may arrive in parts", client.wait(lambda m: m.get("id") == "c", "c")["result"] is None)
    client.notify("exit", None)
    check("the hostile session ends", client.process.wait(20) == 0)


def kernels_of_the_project():
    """Every example has symbols whose text is their name, and renames without change."""
    source = sys.argv[2]
    client = Client()
    files = [os.path.join(d, f) for d, _, names in os.walk(os.path.join(source, "examples")) for f in names if f.endswith(".vyre")]
    check("there are examples", len(files) >= 10)
    for path in sorted(files):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        uri = "file://" + path
        name = os.path.basename(path)
        check(f"{name} is valid", client.open(uri, text) == [])
        symbols = client.request("textDocument/documentSymbol", {"textDocument": {"uri": uri}})["result"]
        for symbol in symbols + [c for s in symbols for c in s["children"]]:
            r = symbol["selectionRange"]
            found = text[offset(text, r["start"]) : offset(text, r["end"])]
            check(f"{name}: {symbol['name']} is where its name is", found == symbol["name"], found)
            answer = client.at("rename", uri, r["start"], newName="renamed_" + symbol["name"])
            good = "result" in answer
            check(f"{name}: {symbol['name']} can be renamed", good, answer)
            if good:
                new = apply(text, answer["result"]["changes"][uri])
                again = subprocess.run([VYRE, "check", "-"], input=new, capture_output=True, text=True)
                check(f"{name}: {symbol['name']} renamed is valid", again.returncode == 0, again.stderr)
    client.close()


for test in (life_cycle, documents, hover, navigation, imports, rename, actions, completion, hostile):
    try:
        test()
    except Exception as error:  # the next test has a server of its own
        failures.append(test.__name__)
        print(f"FAIL {test.__name__}: {type(error).__name__} {error}")
if len(sys.argv) > 2:
    kernels_of_the_project()
print(f"cases: {passed} passed, {len(failures)} failed")
sys.exit(1 if failures else 0)
