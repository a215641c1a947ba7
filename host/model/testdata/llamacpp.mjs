// A small server of Chat Completions over llama.cpp, for TestPeer_LlamaCpp:
//
//     node llamacpp.mjs FOLDER MODEL ADDRESS
//
// FOLDER is what .ci/npm installs: node-llama-cpp, and gbnf, which makes a schema a grammar as
// llama.cpp does. A schema of which llama.cpp says that it leaves out a part is refused.
import {execFile} from "node:child_process";
import http from "node:http";
import path from "node:path";
import {pathToFileURL} from "node:url";

const [folder, file, address] = process.argv.slice(2);
const library = path.join(folder, "node_modules/node-llama-cpp/dist/index.js");
const {getLlama, LlamaGrammarEvaluationState} = await import(pathToFileURL(library));
const llama = await getLlama({gpu: false, build: "never", skipDownload: true, maxThreads: 1});
const model = await llama.loadModel({modelPath: file});
const context = await model.createContext({contextSize: 4096, threads: 1});
const sequence = context.getSequence();

class Refusal extends Error {}

// grammarOf returns the grammar that llama.cpp makes of a schema.
function grammarOf(schema) {
    return new Promise((resolve, reject) => {
        const child = execFile(path.join(folder, "gbnf"), (error, grammar, said) => {
            if (!error && said === "") resolve(grammar);
            else reject(new Refusal(`no grammar of the schema: ${said || error}`));
        });
        child.stdin.end(JSON.stringify(schema));
    });
}

// answer writes the answer to a request. send is called with each part of its text.
async function answer(body, send) {
    const options = {yieldEogToken: true, temperature: body.temperature ?? 0, topP: body.top_p,
        seed: body.seed};
    const format = body.response_format;
    if (format?.type === "json_schema") {
        const text = await grammarOf(format.json_schema.schema);
        const grammar = await llama.createGrammar({grammar: text});
        options.grammarEvaluationState = new LlamaGrammarEvaluationState({model, grammar});
    }
    const texts = body.messages.map((message) => message.content);
    const prompt = [model.tokens.bos, ...model.tokenize(texts.join(" "))];
    await sequence.clearHistory();
    const tokens = [];
    let text = "", finish = "length";
    for await (const token of sequence.evaluate(prompt, options)) {
        if (model.isEogToken(token)) {
            finish = "stop";
            break;
        }
        tokens.push(token);
        const longer = model.detokenize(tokens);
        if (!longer.endsWith("\ufffd")) { // else a character is not whole yet
            send(longer.slice(text.length));
            text = longer;
        }
        if (tokens.length === body.max_tokens) break;
    }
    const usage = {prompt_tokens: prompt.length, completion_tokens: tokens.length};
    return {text, finish, usage};
}

async function serve(body, response) {
    const part = (more) => JSON.stringify({id: "1", created: 0, model: body.model, ...more});
    const chunk = (more) => {
        if (!response.headersSent) response.writeHead(200, {"Content-Type": "text/event-stream"});
        response.write(`data: ${part({object: "chat.completion.chunk", ...more})}\n\n`);
    };
    const delta = (delta, finish = null) => ({choices: [{index: 0, delta, finish_reason: finish}]});
    const send = (content) => body.stream && chunk(delta({content}));
    const {text, finish, usage} = await answer(body, send);
    if (body.stream) {
        chunk(delta({}, finish));
        if (body.stream_options?.include_usage) chunk({choices: [], usage});
        response.end("data: [DONE]\n\n");
        return;
    }
    const message = {role: "assistant", content: text};
    response.writeHead(200, {"Content-Type": "application/json"});
    const choices = [{index: 0, message, finish_reason: finish}];
    response.end(part({object: "chat.completion", choices, usage}));
}

function fail(response, status, error) {
    if (response.headersSent) {
        response.destroy();
        return;
    }
    response.writeHead(status, {"Content-Type": "application/json"});
    const message = String(error?.message ?? error);
    response.end(JSON.stringify({error: {code: status, message, type: "error"}}));
}

let last = Promise.resolve(); // one request at a time
const server = http.createServer(async (request, response) => {
    if (request.method !== "POST" || request.url !== "/v1/chat/completions") {
        fail(response, 404, "there is nothing here");
        return;
    }
    let text = "";
    for await (const piece of request.setEncoding("utf8")) text += piece;
    last = last.then(() => serve(JSON.parse(text), response))
        .catch((error) => fail(response, error instanceof Refusal ? 400 : 500, error));
});
const [host, port] = address.split(":");
server.listen(Number(port), host);
process.on("SIGINT", () => process.exit(0));
