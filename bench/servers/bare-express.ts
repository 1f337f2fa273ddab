import express from 'express'
import { serveAndAnnounce } from './announce.js'

/* What Express alone can do: reads the body, keeps nothing, answers a constant. */

const [, , answer = ''] = process.argv
const constant: unknown = JSON.parse(answer)

const app = express()
app.post('/webhooks/:endpoint', express.raw({ type: '*/*' }), (_req, res) => {
  res.json(constant)
})
app.get('/entitlements/:customerId', (_req, res) => {
  res.json(constant)
})
serveAndAnnounce(app)
