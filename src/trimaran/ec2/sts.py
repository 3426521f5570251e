"""The one STS action that EC2 tools cannot do without: GetCallerIdentity.

Terraform, the AWS CLI and Ansible ask it at start to learn the account.  It is
told from EC2 by its name, shares port and signatures with it, and differs in
the shape of answers and errors (spec ec2.md 9.2).
"""

from __future__ import annotations

from trimaran.ec2.protocol.errors import EC2Error, xml_text
from trimaran.identity import Token

ACTION = "GetCallerIdentity"
VERSION = "2011-06-15"
_NAMESPACE = f"https://sts.amazonaws.com/doc/{VERSION}/"


def is_sts(action: str | None, version: str | None) -> bool:
    """Whether the client speaks to STS, so that also errors take its shape."""
    return action == ACTION or version == VERSION


def caller_identity(token: Token, request_id: str) -> bytes:
    """The answer: account = project id, user id = user id, and an ARN of both."""
    account, user = token.project_id or "", token.user_id
    arn = f"arn:aws:iam::{account}:user/{token.user_name}"
    return (
        f'<{ACTION}Response xmlns="{_NAMESPACE}"><{ACTION}Result>'
        f"<Arn>{xml_text(arn)}</Arn><UserId>{xml_text(user)}</UserId>"
        f"<Account>{xml_text(account)}</Account></{ACTION}Result>"
        f"<ResponseMetadata><RequestId>{xml_text(request_id)}</RequestId></ResponseMetadata>"
        f"</{ACTION}Response>"
    ).encode("ascii", "xmlcharrefreplace")


def error_xml(error: EC2Error, request_id: str) -> bytes:
    """The error document of the plain query protocol."""
    blame = "Sender" if error.status < 500 else "Receiver"
    return (
        f'<ErrorResponse xmlns="{_NAMESPACE}"><Error><Type>{blame}</Type>'
        f"<Code>{xml_text(error.code)}</Code><Message>{xml_text(error.message)}</Message></Error>"
        f"<RequestId>{xml_text(request_id)}</RequestId></ErrorResponse>"
    ).encode("ascii", "xmlcharrefreplace")
