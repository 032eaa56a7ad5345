// Sends pipelined requests to a server of the service reverse, checks each response, prints how many. It speaks the wire
// protocol itself (docs/reference/wire-protocol.md, section 1).
// rustc --edition 2021 -O client.rs && ./client HOST PORT [COUNT]
use std::io::{BufReader, BufWriter, Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::Duration;

const REQUEST: u32 = 4;
const RESPONSE: u32 = 5;
const ERROR: u32 = 6;
const HEADER: u32 = 12;
const LONGEST: u32 = 16 << 20;
const IN_FLIGHT: u64 = 64;

fn make_request(number: u64) -> Vec<u8> {
    format!("request {number}").into_bytes()
}

fn invalid(text: String) -> Error {
    Error::new(ErrorKind::InvalidData, text)
}

fn send(stream: &mut impl Write, payload: &[u8]) -> Result<()> {
    let length = payload.len() as u32;
    for field in [HEADER + length, REQUEST, length] {
        stream.write_all(&field.to_be_bytes())?;
    }
    stream.write_all(payload)
}

fn receive(stream: &mut impl Read) -> Result<Vec<u8>> {
    let mut header = [0u8; HEADER as usize];
    stream.read_exact(&mut header)?;
    let field = |i: usize| u32::from_be_bytes(header[4 * i..4 * i + 4].try_into().unwrap());
    let (size, id, length) = (field(0), field(1), field(2));
    if length > LONGEST || size != HEADER + length {
        return Err(invalid(format!("a malformed frame of {size} bytes")));
    }
    let mut payload = vec![0u8; length as usize];
    stream.read_exact(&mut payload)?;
    match id {
        RESPONSE => Ok(payload),
        ERROR if length >= 4 => {
            let code = u32::from_be_bytes(payload[..4].try_into().unwrap());
            let text = String::from_utf8_lossy(&payload[4..]);
            Err(invalid(format!("refused with code {code}: {}", text.escape_debug())))
        }
        _ => Err(invalid(format!("message {id} instead of a response"))),
    }
}

fn ask(host: &str, port: u16, count: u64) -> Result<u64> {
    let stream = TcpStream::connect((host, port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    stream.set_write_timeout(Some(Duration::from_secs(30)))?;
    let mut output = BufWriter::new(stream.try_clone()?);
    let mut input = BufReader::new(stream);
    let mut sent = 0;
    for answered in 0..count {
        while sent < count && sent - answered < IN_FLIGHT {
            send(&mut output, &make_request(sent))?;
            sent += 1;
        }
        output.flush()?;
        let mut response = receive(&mut input)?;
        response.reverse();
        if response != make_request(answered) {
            return Err(invalid(format!("a wrong response to request {answered}")));
        }
    }
    Ok(count)
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let number = |i: usize| words.get(i).and_then(|word| word.parse::<u64>().ok());
    if words.len() < 3 || number(2).is_none() {
        eprintln!("usage: {} HOST PORT [COUNT]", words[0]);
        std::process::exit(2);
    }
    match ask(&words[1], number(2).unwrap() as u16, number(3).unwrap_or(10000)) {
        Ok(answered) => println!("{answered} responses, all right"),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}
