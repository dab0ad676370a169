// Mnemarch for opencode: hands its events to `mnemarch hook` and what that answers to the model.
// Written by `mnemarch install opencode`; `mnemarch uninstall opencode` removes it.
import { spawn } from "node:child_process"

const COMMAND = ["mnemarch", "hook", "--host", "opencode"]
const TIMEOUT_MS = 10000

// One event; gives the hook's answer, or nothing. Never throws: a memory that fails must not stop the work.
const hook = (event) =>
  new Promise((resolve) => {
    let answer = ""
    const child = spawn(COMMAND[0], COMMAND.slice(1), { cwd: event.cwd, stdio: ["pipe", "pipe", "ignore"] })
    const timer = setTimeout(() => child.kill("SIGKILL"), TIMEOUT_MS)
    const done = () => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(answer))
      } catch {
        resolve({})
      }
    }
    child.on("error", done)
    child.on("close", done)
    child.stdout.on("data", (part) => (answer += part))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(event))
  })

export const Mnemarch = async ({ directory }) => {
  const started = new Set() // sessions that have had their start
  const waiting = {} // by session: context for the next call of the model
  const children = new Set() // sessions of subagents

  const say = async (name, session, fields = {}) => {
    const answer = await hook({ hook_event_name: name, session_id: session, cwd: directory, ...fields })
    const context = answer.additionalContext ?? answer.hookSpecificOutput?.additionalContext
    return { answer, context }
  }
  const keep = (session, context) => {
    if (context) (waiting[session] ??= []).push(context)
  }

  return {
    "chat.message": async (input, output) => {
      const session = input.sessionID
      if (!started.has(session)) {
        started.add(session)
        keep(session, (await say("session.created", session, { source: "startup" })).context)
      }
      const prompt = output.parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text)
      keep(session, (await say("chat.message", session, { prompt: prompt.join("\n") })).context)
    },
    "experimental.chat.system.transform": async (input, output) => {
      // The same system prompt at each call of one session: what was given once stays.
      for (const context of waiting[input.sessionID] ?? []) output.system.push(context)
    },
    "tool.execute.before": async (input, output) => {
      const { answer, context } = await say("tool.execute.before", input.sessionID, {
        tool_name: input.tool,
        tool_use_id: input.callID,
        tool_input: output.args,
      })
      keep(input.sessionID, context)
      if (answer.decision === "block") throw new Error(answer.reason)
    },
    "tool.execute.after": async (input, output) => {
      const { context } = await say("tool.execute.after", input.sessionID, {
        tool_name: input.tool,
        tool_use_id: input.callID,
        tool_input: input.args,
        tool_response: output.output,
        metadata: { exit: output.metadata?.exit },
      })
      if (context) output.output += `\n\n${context}`
    },
    "experimental.session.compacting": async (input, output) => {
      const { context } = await say("experimental.session.compacting", input.sessionID)
      if (context) output.context.push(context)
    },
    event: async ({ event }) => {
      const session = event.properties?.sessionID ?? event.properties?.info?.id
      if (event.type === "session.created" && event.properties.info.parentID) children.add(session)
      if (event.type === "session.idle") {
        await say("session.idle", session, { is_subagent: children.has(session) })
      }
      if (event.type === "session.deleted") {
        started.delete(session)
        delete waiting[session]
        await say("session.deleted", session)
      }
    },
  }
}
