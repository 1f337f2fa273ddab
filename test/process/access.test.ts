import { expect, it } from 'vitest'
import { latchkey, runProgram, temporaryFolder } from '../setup/program.js'
import { runHere } from './in-process.js'
import { kill, serve } from './served.js'

const ABOUT = ['--customer', 'cus_1', '--product', 'pro_1']

/** The daemon of an empty folder, and the commands that are run beside it. */
async function firstStart() {
  const folder = temporaryFolder()
  let daemon = await serve(folder)

  async function output(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await runProgram(latchkey(...args), { folder })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return stdout
  }

  return {
    trigger: (type: string) => output('trigger', type, ...ABOUT, '--url', daemon.url),
    check: async () => {
      const { stdout } = await runHere(folder, ['check', 'cus_1', 'pro_1', '--json'])
      const { active, status } = JSON.parse(stdout)
      return { active, status }
    },
    checkLine: () => output('check', 'cus_1'),
    stop: async () => {
      daemon.signal('SIGTERM')
      return (await daemon.exit).code
    },
    crash: () => kill(daemon),
    startAgain: async () => {
      daemon = await serve(folder)
    },
  }
}

it.each([
  ['v3', 'payment.authorized', 'payment.refunded'],
  ['v2', 'CHECKOUT_SUCCESS', 'PAYMENT_REFUNDED'],
])('gives access and takes it back, through crashes, in the words of %s', async (_, grant, takeBack) => {
  const latchkey = await firstStart()
  expect(await latchkey.check()).toEqual({ active: false, status: 'none' })

  expect(await latchkey.trigger(grant)).toMatch(new RegExp(`^${grant}  evt_\\w+  pay_\\w+  applied\\n$`))
  expect(await latchkey.check()).toEqual({ active: true, status: 'active' })
  expect(await latchkey.checkLine()).toMatch(/^pro_1 {2}active {2}since \d{4}-\S+Z {2}\(payment pay_\w+\)\n$/)

  await latchkey.crash()
  expect(await latchkey.check()).toEqual({ active: true, status: 'active' })
  await latchkey.startAgain()
  expect(await latchkey.check()).toEqual({ active: true, status: 'active' })

  expect(await latchkey.trigger(takeBack)).toMatch(
    new RegExp(`^${takeBack}  evt_\\w+  pay_\\w+  applied\\n$`),
  )
  expect(await latchkey.check()).toEqual({ active: false, status: 'refunded' })
  await latchkey.crash()
  await latchkey.startAgain()
  expect(await latchkey.check()).toEqual({ active: false, status: 'refunded' })

  expect(await latchkey.stop()).toBe(0)
  expect(await latchkey.check()).toEqual({ active: false, status: 'refunded' })
})
