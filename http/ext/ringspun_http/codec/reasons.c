#include "codec/reasons.h"

#include <stddef.h>

#define FIRST 100 /* of the first class, 1xx */
#define END 600 /* behind the last class, 5xx */

static const char *const reasons[END - FIRST] = {
#define AS(status, text) [(status) - FIRST] = text
    AS(100, "Continue"), AS(101, "Switching Protocols"), AS(102, "Processing"), AS(103, "Early Hints"), AS(200, "OK"),
    AS(201, "Created"), AS(202, "Accepted"), AS(203, "Non-Authoritative Information"), AS(204, "No Content"),
    AS(205, "Reset Content"), AS(206, "Partial Content"), AS(207, "Multi-Status"), AS(208, "Already Reported"), AS(226, "IM Used"),
    AS(300, "Multiple Choices"), AS(301, "Moved Permanently"), AS(302, "Found"), AS(303, "See Other"), AS(304, "Not Modified"),
    AS(305, "Use Proxy"), AS(307, "Temporary Redirect"), AS(308, "Permanent Redirect"), AS(400, "Bad Request"),
    AS(401, "Unauthorized"), AS(402, "Payment Required"), AS(403, "Forbidden"), AS(404, "Not Found"), AS(405, "Method Not Allowed"),
    AS(406, "Not Acceptable"), AS(407, "Proxy Authentication Required"), AS(408, "Request Timeout"), AS(409, "Conflict"),
    AS(410, "Gone"), AS(411, "Length Required"), AS(412, "Precondition Failed"), AS(413, "Content Too Large"),
    AS(414, "URI Too Long"), AS(415, "Unsupported Media Type"), AS(416, "Range Not Satisfiable"), AS(417, "Expectation Failed"),
    AS(421, "Misdirected Request"), AS(422, "Unprocessable Content"), AS(423, "Locked"), AS(424, "Failed Dependency"),
    AS(425, "Too Early"), AS(426, "Upgrade Required"), AS(428, "Precondition Required"), AS(429, "Too Many Requests"),
    AS(431, "Request Header Fields Too Large"), AS(451, "Unavailable For Legal Reasons"), AS(500, "Internal Server Error"),
    AS(501, "Not Implemented"), AS(502, "Bad Gateway"), AS(503, "Service Unavailable"), AS(504, "Gateway Timeout"),
    AS(505, "HTTP Version Not Supported"), AS(506, "Variant Also Negotiates"), AS(507, "Insufficient Storage"),
    AS(508, "Loop Detected"), AS(511, "Network Authentication Required")
};

const char *rhttp_reason(uint16_t status) {
    const char *reason = status >= FIRST && status < END ? reasons[status - FIRST] : NULL;
    return reason ? reason : "";
}
