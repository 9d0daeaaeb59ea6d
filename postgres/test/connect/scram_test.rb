# frozen_string_literal: true

require "postgres_helper"
require "support/certificate"

# The client's side of SCRAM, with the vectors of the RFCs, and with servers that do not keep to them.
class ScramTest < Minitest::Test
  include AnyBackend

  SCRAM = Ringspun::Postgres.const_get(:Scram)
  SASLPREP = SCRAM.const_get(:Saslprep)
  NONCE = "rOprNGfwEbeRWgbNEkqO"
  # RFC 7677, section 3, but for the user, whom Postgres knows already.
  SERVER_FIRST = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"

  def setup = GC.stress = false # thousands of rounds of a hash

  def test_the_vector_of_rfc_7677
    scram = scram("pencil")
    scram.instance_variable_set(:@bare, "n=user,r=#{NONCE}")
    assert_equal "n,,n=user,r=#{NONCE}", scram.first
    assert_equal "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
                 scram.final(SERVER_FIRST)
    assert_nil scram.verify("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
  end

  def test_the_password_is_never_shown
    assert_equal "#<Ringspun::Postgres::Scram SCRAM-SHA-256>", scram("pencil").inspect
    authentication = Ringspun::Postgres.const_get(:Startup).const_get(:Authentication)
    options = Ringspun::Postgres.const_get(:Options).new("postgres://me:pencil@db")
    refute_includes authentication.new(options, nil).inspect, "pencil"
  end

  def test_a_server_that_does_not_know_the_password
    scram = scram("pencil")
    scram.final(SERVER_FIRST)
    ["v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", "v=", "v=AAAA", "e=invalid-proof", ""].each do |server_final|
      error = assert_raises(Ringspun::Postgres::ConnectError) { scram.verify(server_final.b) }
      assert_match(/does not prove that it knows the password/, error.message)
    end
    assert_raises(Ringspun::Postgres::ProtocolError) { scram.verify("v=?") }
  end

  def test_a_first_message_that_is_wrong
    ["", "r=#{NONCE},s=QQ==,i=1", "r=other,s=QQ==,i=1", "r=#{NONCE}x,s=?,i=1", "r=#{NONCE}x,s=QQ==,i=0", "r=#{NONCE}x,s=QQ==",
     "r=#{NONCE}x,s=QQ==,i=-1", "m=ext,r=#{NONCE}x,s=QQ==,i=1", "r=#{NONCE}\xff,s=QQ==,i=1", "r=#{NONCE}x,s=QQ==,i=01",
     "r=#{NONCE}x,s=QQ==,i=99999999999"].each do |server_first|
      assert_raises(Ringspun::Postgres::ProtocolError, server_first) { scram("pencil").final(server_first.b) }
    end
  end

  def test_more_iterations_than_anybody_should_ask_for
    error = assert_raises(Ringspun::Postgres::ConnectError) { scram("pencil").final("r=#{NONCE}x,s=QQ==,i=1000001") }
    assert_match(/asks for 1000001 iterations, and at most 1000000/, error.message)
  end

  # --- channel binding ---

  def test_a_proof_that_is_bound_to_the_connection
    scram = scram("pencil", %w[SCRAM-SHA-256-PLUS SCRAM-SHA-256], bound: "hash")
    assert_equal ["SCRAM-SHA-256-PLUS", "p=tls-server-end-point,,n=,r=#{NONCE}"], [scram.mechanism, scram.first]
    assert_equal "p=tls-server-end-point,,hash", scram.final(SERVER_FIRST)[/c=([^,]+)/, 1].unpack1("m0")
  end

  def test_an_offer_to_bind_that_somebody_may_have_taken_away
    scram = scram("pencil", bound: "hash")
    assert_equal ["SCRAM-SHA-256", "y,,n=,r=#{NONCE}"], [scram.mechanism, scram.first]
    assert_equal "y,,", scram.final(SERVER_FIRST)[/c=([^,]+)/, 1].unpack1("m0")
  end

  def test_mechanisms_that_are_not_known
    error = assert_raises(Ringspun::Postgres::ConnectError) { scram("pencil", ["SCRAM-SHA-256-PLUS", "X\e[2J"]) }
    assert_match(/offers "SCRAM-SHA-256-PLUS", "X\\e\[2J"; none of them is known/, error.message)
  end

  def test_what_of_a_certificate_is_bound
    { "SHA256" => "SHA256", "SHA384" => "SHA384", "SHA512" => "SHA512", "SHA1" => "SHA256" }.each do |signed, hashed|
      certificate = signed_by(signed)
      assert_equal OpenSSL::Digest.digest(hashed, certificate.to_der), SCRAM.binding_of(certificate), signed
    end
    assert_nil SCRAM.binding_of(OpenSSL::X509::Certificate.new(ED25519))
  end

  # Made by: openssl req -x509 -newkey rsa:1024 -nodes -subj /CN=pss -sha384 -sigopt rsa_padding_mode:pss (and sha1);
  # and with -newkey ed25519.
  def test_a_signature_whose_hash_is_a_parameter
    certificate = OpenSSL::X509::Certificate.new(PSS_SHA384)
    assert_equal OpenSSL::Digest.digest("SHA384", certificate.to_der), SCRAM.binding_of(certificate)
    certificate = OpenSSL::X509::Certificate.new(PSS_SHA1)
    assert_equal OpenSSL::Digest.digest("SHA256", certificate.to_der), SCRAM.binding_of(certificate)
  end

  # --- SASLprep ---

  # RFC 4013, section 3, and what PostgreSQL does with what is prohibited.
  def test_passwords_as_they_are_compared
    { "I\u00ADX" => "IX", "user" => "user", "USER" => "USER", "\u00AA" => "a", "\u2168" => "IX", "\u0007\u2168" => "\u0007\u2168",
      "\u0627\u0031\u2168" => "\u0627\u0031\u2168", "a\u00A0\u2168" => "a IX", "\u{1F600}\u2168" => "\u{1F600}\u2168",
      "\u0627\u0628" => "\u0627\u0628", "\u00AD" => "\u00AD" }.each do |password, prepared|
      assert_equal prepared, SASLPREP.prepare(password), password.dump
    end
    assert_equal "\xff\u2168".b, SASLPREP.prepare("\xff\u2168").b
  end

  private

  def scram(password, mechanisms = %w[SCRAM-SHA-256], bound: nil) = SCRAM.new(password, mechanisms, bound:, nonce: NONCE)

  def signed_by(digest) = OpenSSL::X509::Certificate.new(Certificate.certificate.to_der).sign(Certificate.key, digest)

  PSS_SHA384 = <<~PEM
    -----BEGIN CERTIFICATE-----
    MIICYDCCAZWgAwIBAgIUErZuje0Sh8w2Mef10WB71jDIMxIwQQYJKoZIhvcNAQEK
    MDSgDzANBglghkgBZQMEAgIFAKEcMBoGCSqGSIb3DQEBCDANBglghkgBZQMEAgIF
    AKIDAgEwMA4xDDAKBgNVBAMMA3BzczAeFw0yNjExMjUwODM3MDdaFw0yNjEyMjUw
    ODM3MDdaMA4xDDAKBgNVBAMMA3BzczCBnzANBgkqhkiG9w0BAQEFAAOBjQAwgYkC
    gYEAl0x7Hzxkwxdedab8rZ/vLBhTpk7xM+wXwkISkNqdxTJVqV1ypliPgKaRQizl
    mgH8trmqdxRWvBwZhmPovKfXrDNDg0K+FdMghIski3icHbfet8aRUqoO0ZSbrEhu
    O9lEGJxu8qXd8ysiYjWJMoC4vyGYosrrDmkL/f3NA6bsqGsCAwEAAaNTMFEwHQYD
    VR0OBBYEFI/mG4JK4nwtbjeYolJetoLbu8aUMB8GA1UdIwQYMBaAFI/mG4JK4nwt
    bjeYolJetoLbu8aUMA8GA1UdEwEB/wQFMAMBAf8wQQYJKoZIhvcNAQEKMDSgDzAN
    BglghkgBZQMEAgIFAKEcMBoGCSqGSIb3DQEBCDANBglghkgBZQMEAgIFAKIDAgEw
    A4GBAEvrwLje/spAjTmUS572kdlGw/HMqX3kayp5BqbSw7qttewySvzXXGJnYClD
    bxE5b4aJJz4aCgGH3HVT7RWGER/RKMoRphLmrGEZJP8nKWb5cE+PWooos7we0f2f
    BuIEEuKCWN4G7hCpTXaPq26j8zo7i3pWzXJAxjo1iDlKv5hO
    -----END CERTIFICATE-----
  PEM
  PSS_SHA1 = <<~PEM
    -----BEGIN CERTIFICATE-----
    MIIB+DCCAWGgAwIBAgIUUKWk8Tp+DHtuTr5r3qa56hrWG1AwDQYJKoZIhvcNAQEK
    MAAwDjEMMAoGA1UEAwwDcHNzMB4XDTI2MTEyNTA4MzcwN1oXDTI2MTIyNTA4Mzcw
    N1owDjEMMAoGA1UEAwwDcHNzMIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCr
    Tr/empENvQH91hNpQwoZUHgC/1I1xupwg3ZosEoITzlFTb4cM/goDY/RfZz7910W
    18YY24deTd4vKV5beXz5a7c+UIzJPWaca5jIKq2Hl8/DiTxXLgbEJf+kwaHU8KkK
    9s7C1WmU2QzWntmveLwCGOHt+7PmFfY8Vv0CEkGSnwIDAQABo1MwUTAdBgNVHQ4E
    FgQUSBkSC6jGiAXALAe6K/8pf5DHHxgwHwYDVR0jBBgwFoAUSBkSC6jGiAXALAe6
    K/8pf5DHHxgwDwYDVR0TAQH/BAUwAwEB/zANBgkqhkiG9w0BAQowAAOBgQBsIKiV
    9rgP5bcGCKHb2cavZC3mwNkgFGOSIROGcZ0kFAO0H4xwX9r2bXw7ZalkxnOCkMPw
    DVHmUXezC+MP8H4LJNgHoyFG4eSmRrPLDjKoPQfh5MJWYukgOtna6sNKFjnHVZtk
    mctrmiNkZYMpaoVfuCp5Xr5Rco9jwp0ucAdlWQ==
    -----END CERTIFICATE-----
  PEM
  ED25519 = <<~PEM
    -----BEGIN CERTIFICATE-----
    MIIBLjCB4aADAgECAhRhb+LyJ6m9V+mDSBQeRVHnkg1uKDAFBgMrZXAwDTELMAkG
    A1UEAwwCZWQwHhcNMjYxMTI1MDgzNzI1WhcNMjYxMjI1MDgzNzI1WjANMQswCQYD
    VQQDDAJlZDAqMAUGAytlcAMhAANVoEPu9GKzHdN0O0mNoq3vQmXoqNIpk5TnIoh7
    jDHso1MwUTAdBgNVHQ4EFgQUYJvoiXOC+6qb0mqVAGaVbaVduggwHwYDVR0jBBgw
    FoAUYJvoiXOC+6qb0mqVAGaVbaVduggwDwYDVR0TAQH/BAUwAwEB/zAFBgMrZXAD
    QQCt4/rJym0vPMdMG7LUySUVpXGAj6lXCRfQidJ+2ooin15fuYmxBmTs6s1zGhns
    dVojtu/dzHTzVbom4afmjwUG
    -----END CERTIFICATE-----
  PEM
  private_constant :PSS_SHA384, :PSS_SHA1, :ED25519
end
