// An Express app that sells reports as the product pro_1. It receives webhooks itself, and shows a 402 to those who
// have not paid. Run `npx latchkey init` once, name the feature in config.json
// ("products": { "pro_1": { "features": ["reports"] } }), and start it with the key in LATCHKEY_API_KEY. In a second
// terminal, ask before and after a payment, and see the 402 become a 200:
//   curl -i 'http://127.0.0.1:3000/reports?customer=cus_1'
//   npx latchkey trigger payment.authorized --customer cus_1 --product pro_1
import express from 'express'
import { createReceiver, startDaemon } from 'latchkey'
import { createClient } from 'latchkey/client'
import { requireFeature } from 'latchkey/express'

const latchkey = await startDaemon({ config: 'config.json' })
const client = createClient({
  url: latchkey.url,
  apiKey: process.env.LATCHKEY_API_KEY,
  onUnavailable: 'deny',
})
const app = express()

// Before any body parser: the signature covers the exact bytes.
app.use('/webhooks', createReceiver(latchkey))

const paid = requireFeature('reports', {
  client,
  // A real shop takes the customer from its session: here anybody may claim to be anybody.
  customerId: (req) => req.query.customer,
  onDenied: ({ status }, _req, res) =>
    res.status(status).send(status === 402 ? 'Reports are part of pro_1: buy it at /buy.\n' : 'Not now.\n'),
})

app.get('/reports', paid, (_req, res) => res.send('The report of the month.\n'))
app.get('/buy', (_req, res) => res.send('Here is the checkout of the payments service.\n'))

const server = app.listen(process.env.PORT ?? 3000, () => console.log('the shop is open'))
process.once('SIGTERM', () => {
  client.close()
  server.close(() => latchkey.close())
})
